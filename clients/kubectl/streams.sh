#!/usr/bin/env bash
# kubectl's commands that reach kubelets, on an old one and on a new one (see ../with-kubelet), over WebSockets
# and over SPDY, against a Pintle of its own. PINTLE_TEST_BYTES is how many bytes go each way.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
for tool in kubectl python3 script; do
  command -v $tool >/dev/null || { "$root/skipped" clients/kubectl "there is no $tool on the path"; exit; }
done
if [ "${1:-}" != inside ]; then
  exec "$root/with-kubelet" "$root/with-pintle" "$0" inside
fi
[ -n "${PINTLE_TEST_KUBELETS:-}" ] || { "$root/skipped" clients/kubectl 'there are no kubelets'; exit; }
bytes=${PINTLE_TEST_BYTES:-8388608}
scratch=$(mktemp -d)
jobs=
trap 'kill $jobs 2>/dev/null || true; rm -rf "$scratch"' EXIT
head -c "$bytes" /dev/urandom >"$scratch/sent"
sum() { sha256sum "$@" | cut -d' ' -f1; }
sent=$(sum "$scratch/sent")

# is WHAT EXPECTED ACTUAL
is() { [ "$2" = "$3" ] || { echo "FAIL $pod, WebSockets $KUBECTL_REMOTE_COMMAND_WEBSOCKETS: $1: expected $2, got $3" >&2; exit 1; }; }
code() { local code=0; "$@" >"$scratch/out" 2>"$scratch/err" || code=$?; echo "$code"; }

# pod NAME PORT FEATURES: a pod on a node of its own
pod() {
  kubectl create -f - <<YAML >/dev/null
apiVersion: v1
kind: Node
metadata: {name: $1}
status:
  addresses: [{type: InternalIP, address: 127.0.0.1}]
  daemonEndpoints: {kubeletEndpoint: {Port: $2}}
  declaredFeatures: [$3]
---
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec: {nodeName: $1, containers: [{name: c, image: i}]}
YAML
  kubectl patch pod "$1" --subresource=status --type=merge >/dev/null \
    -p '{"status":{"phase":"Running","containerStatuses":[{"name":"c","image":"i","imageID":"i","ready":true,"restartCount":0,"state":{"running":{}}}]}}'
}

commands() {
  is 'code of true' 0 "$(code kubectl exec "$pod" -- sh -c 'echo out; echo err >&2')"
  is 'output' 'out err' "$(cat "$scratch/out") $(cat "$scratch/err")"
  is 'code 1' 1 "$(code kubectl exec "$pod" -- sh -c 'exit 1')"
  is 'code 137' 137 "$(code kubectl exec "$pod" -- sh -c 'kill -9 $$')"
  is 'empty output' 0 "$(code kubectl exec "$pod" -- true)"
  is 'unknown container' 1 "$(code kubectl exec "$pod" -c absent -- true)"
  is 'end of input' 3 "$(printf abc | kubectl exec -i "$pod" -- wc -c | tr -d ' ')"
  is 'bytes each way' "$sent" "$(kubectl exec -i "$pod" -- cat <"$scratch/sent" | sum)"
  is 'attach' attached "$(echo attached | kubectl attach -i "$pod" 2>/dev/null)"
  is 'size of a terminal' '91 columns, 33 rows' \
    "$(script -qec "stty cols 91 rows 33; kubectl exec -it $pod -- size" /dev/null </dev/null | tr -d '\r' | grep columns)"
}

files() {
  kubectl cp "$scratch/sent" "$pod:$scratch/there" && kubectl cp "$pod:$scratch/there" "$scratch/back" >/dev/null
  is 'cp there' "$sent" "$(sum "$scratch/there")"
  is 'cp back' "$sent" "$(sum "$scratch/back")"
  rm "$scratch/there" "$scratch/back"
}

logs() {
  is 'lines of logs' 10 "$(kubectl logs "$pod" | wc -l)"
  is 'lines of logs that are followed' 20 "$(kubectl logs -f "$pod" | wc -l)"
}

debug() {
  kubectl debug "$pod" --image=i --container=d --quiet -- true >/dev/null
  is 'a container to debug with' d "$(kubectl get pod "$pod" -o 'jsonpath={.spec.ephemeralContainers[0].name}')"
  kubectl patch pod "$pod" --subresource=status --type=merge >/dev/null \
    -p '{"status":{"ephemeralContainerStatuses":[{"name":"d","image":"i","imageID":"i","ready":false,"restartCount":0,"state":{"running":{}}}]}}'
  is 'attach to it' debugged "$(echo debugged | kubectl attach -i "$pod" -c d 2>/dev/null)"
}

# ports PORT: what is sent there comes back
ports() {
  kubectl port-forward "$pod" ":$1" >"$scratch/forward" 2>&1 &
  local forward=$!
  jobs="$jobs $forward"
  for _ in $(seq 600); do
    grep -q 'Forwarding from 127' "$scratch/forward" && break
    sleep 0.1
  done
  local at
  at=$(sed -n 's/Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' "$scratch/forward")
  is 'bytes each way through a port' "$sent" "$(python3 "$scratch/through.py" "$at" "$scratch/sent")"
  kill "$forward"
  wait "$forward" 2>/dev/null || true
}

cat >"$scratch/echo.py" <<'PYTHON'
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def echo(client):
    while data := client.recv(65536):
        client.sendall(data)
    client.close()
while True:
    threading.Thread(target=echo, args=[listener.accept()[0]], daemon=True).start()
PYTHON
cat >"$scratch/through.py" <<'PYTHON'
import hashlib, socket, sys, threading
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sent = open(sys.argv[2], "rb").read()
threading.Thread(target=client.sendall, args=[sent], daemon=True).start()
digest, left = hashlib.sha256(), len(sent)
while left and (data := client.recv(65536)):
    digest.update(data)
    left -= len(data)
print(digest.hexdigest())
PYTHON
python3 "$scratch/echo.py" >"$scratch/port" &
jobs="$jobs $!"

kubectl wait --for=create serviceaccount/default >/dev/null
read -r old new <<<"$PINTLE_TEST_KUBELETS"
pod old "$old" ''
pod new "$new" ExtendWebSocketsToKubelet
for pod in old new; do
  for websockets in true false; do
    export KUBECTL_REMOTE_COMMAND_WEBSOCKETS=$websockets KUBECTL_PORT_FORWARD_WEBSOCKETS=$websockets
    commands
    files
    ports "$(cat "$scratch/port")"
  done
  logs
  debug
  echo "ok: kubectl on the $pod kubelet"
done
