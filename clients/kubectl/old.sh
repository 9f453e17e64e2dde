#!/usr/bin/env bash
# kubectl 1.20 (Debian's kubernetes-client) against a Pintle of its own that serves removed versions of the
# API. OLD_KUBECTL names another old kubectl.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
skip() { "$root/skipped" 'clients/kubectl of 1.20' "$1"; exit; }
if [ "${1:-}" != inside ]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  if [ -z "${OLD_KUBECTL:-}" ]; then
    command -v dpkg >/dev/null || skip 'there is no dpkg on the path'
    chmod 755 "$scratch" # apt's own user writes there
    download() { (cd "$scratch" && timeout 180 apt-get -qq download kubernetes-client >/dev/null 2>&1); }
    download || { timeout 300 apt-get -qq update >/dev/null 2>&1 && download; } || skip 'the package kubernetes-client cannot be had'
    dpkg -x "$scratch"/kubernetes-client*.deb "$scratch"
    export OLD_KUBECTL=$scratch/usr/bin/kubectl
  fi
  HOME=$scratch PINTLE_TEST_FLAGS='--runtime-config=api/legacy=true' "$root/with-pintle" "$0" inside
  exit
fi

scratch=$HOME
failures=0
k() { "$OLD_KUBECTL" "$@"; }

# is EXPECTED COMMAND…: compares what a command prints, except for spaces at the ends of lines.
is() {
  local expected=$1 actual
  shift
  actual=$("$@" 2>"$scratch/err" | sed 's/ *$//') || true
  [ "$expected" = "$actual" ] && return
  failures=$((failures + 1))
  printf 'FAIL %s\nexpected: %s\nactual:   %s\n%s\n' "$*" "$expected" "$actual" "$(cat "$scratch/err")" >&2
}
# has TEXT COMMAND…: a command succeeds, and prints a text among others.
has() {
  local expected=$1 actual
  shift
  actual=$("$@" 2>&1) && grep -qF -- "$expected" <<<"$actual" && return
  failures=$((failures + 1))
  printf 'FAIL %s\nexpected: %s\nactual:   %s\n' "$*" "$expected" "$actual" >&2
}

discovery() {
  has 'GitVersion:"v1.20' k version --client
  has 'Major:"1", Minor:"36"' k version
  for version in extensions/v1beta1 apps/v1beta1 apps/v1beta2 policy/v1beta1 batch/v1beta1 apiextensions.k8s.io/v1beta1; do
    has "$version" k api-versions
  done
  is $'daemonsets\ndeployments\ningresses\nnetworkpolicies\npodsecuritypolicies\nreplicasets' \
    bash -c '"$OLD_KUBECTL" api-resources --api-group=extensions -o name | sed s/.extensions// | sort'
  has 'VERSION:  extensions/v1beta1' k explain ingress.spec.backend --api-version=extensions/v1beta1
  has 'serviceName' k explain ingress.spec.backend --api-version=extensions/v1beta1
}

workloads() {
  cat >"$scratch/web.yaml" <<'YAML'
apiVersion: extensions/v1beta1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "nginx:1.7.9", ports: [{containerPort: 80}]}]}
YAML
  is 'deployment.extensions/web created' k apply -f "$scratch/web.yaml"
  is 'deployment.extensions/web unchanged' k apply -f "$scratch/web.yaml"
  sed -i s/1.7.9/1.8/ "$scratch/web.yaml"
  is 'deployment.extensions/web configured' k apply -f "$scratch/web.yaml"
  is 'nginx:1.8 1 web' k get deployments.v1beta1.extensions web \
    -o 'jsonpath={.spec.template.spec.containers[0].image} {.spec.strategy.rollingUpdate.maxSurge} {.spec.selector.matchLabels.app}'
  is 'nginx:1.8 apps/v1' k get deployments.v1.apps web -o 'jsonpath={.spec.template.spec.containers[0].image} {.apiVersion}'
  is $'NAME   READY   UP-TO-DATE   AVAILABLE\nweb    0/1     0            0' \
    bash -c '"$OLD_KUBECTL" get deployments.v1beta1.extensions | cut -c1-38'
  has 'nginx:1.8' k describe deployments.v1beta1.extensions web
  sed s/1.8/1.10/ "$scratch/web.yaml" >"$scratch/next.yaml"
  is $'-      - image: nginx:1.8\n+      - image: nginx:1.10' \
    bash -c '"$OLD_KUBECTL" diff -f "$0" | grep "^[-+] .*image"' "$scratch/next.yaml"
  is 'deployment.extensions/web scaled' k scale deployments.v1beta1.extensions/web --replicas=3 --current-replicas=1
  is 3 k get deployments.v1beta2.apps web -o 'jsonpath={.spec.replicas}'
  is 'deployment.extensions/web image updated' k set image -f "$scratch/web.yaml" c=nginx:1.9
  is 'deployment.extensions/web paused' k rollout pause deployments.v1beta1.extensions/web
  is 'deployment.extensions/web resumed' k rollout resume deployments.v1beta1.extensions/web
  is 'deployment.extensions/web restarted' k rollout restart deployments.v1beta1.extensions/web
  is 'deployment.extensions/web labeled' k label deployments.v1beta1.extensions web tier=front
  is 'deployment.extensions/web patched' k patch deployments.v1beta1.extensions web -p '{"spec":{"minReadySeconds":5}}'
  is 'service/web exposed' k expose deployments.v1beta1.extensions/web --port=80
  is 'horizontalpodautoscaler.autoscaling/web autoscaled' k autoscale deployments.v1beta1.extensions/web --max=5
  is 'extensions/v1beta1' k get hpa web -o 'jsonpath={.spec.scaleTargetRef.apiVersion}'
  rollouts
  is 'deployment.extensions/web serverside-applied' k apply --server-side --force-conflicts -f "$scratch/web.yaml"
  is 'deployment.extensions "web" deleted' k delete -f "$scratch/web.yaml"
  has NotFound bash -c '! "$OLD_KUBECTL" get deployment web'
  is 'statefulset.apps/db created' k create -f - <<'YAML'
apiVersion: apps/v1beta1
kind: StatefulSet
metadata: {name: db}
spec: {serviceName: db, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: postgres}]}}}
YAML
  is 'daemonset.extensions/agent created' k create -f - <<'YAML'
apiVersion: extensions/v1beta1
kind: DaemonSet
metadata: {name: agent}
spec: {template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: agent}]}}}
YAML
  is 'OnDelete OnDelete' bash -c 'echo "$("$OLD_KUBECTL" get sts db -o "jsonpath={.spec.updateStrategy.type}") $("$OLD_KUBECTL" get ds agent -o "jsonpath={.spec.updateStrategy.type}")"'
}

# rollouts: a rollout ends when a controller says so in the status. This one is played by kubectl itself.
rollouts() {
  "$OLD_KUBECTL" rollout status deployments.v1beta1.extensions/web --timeout=60s >"$scratch/rollout" &
  local waiting=$! generation
  "$OLD_KUBECTL" proxy --port=0 >"$scratch/proxy" &
  local proxy=$!
  for _ in $(seq 600); do grep -q 'Starting to serve' "$scratch/proxy" && break; sleep 0.1; done
  generation=$(k get deployments.v1beta1.extensions web -o 'jsonpath={.metadata.generation}')
  python3 - "$(sed -n 's/Starting to serve on //p' "$scratch/proxy")" "$generation" <<'PYTHON'
import json, sys, urllib.request
address, generation = sys.argv[1], int(sys.argv[2])
status = {"observedGeneration": generation, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}
url = f"http://{address}/apis/extensions/v1beta1/namespaces/default/deployments/web/status"
headers = {"Content-Type": "application/merge-patch+json"}
request = urllib.request.Request(url, json.dumps({"status": status}).encode(), headers, method="PATCH")
urllib.request.urlopen(request).read()
PYTHON
  kill "$proxy"
  wait "$waiting" || true
  has 'deployment "web" successfully rolled out' cat "$scratch/rollout"
}

networks() {
  is $'ingress.extensions/web created\ningress.networking.k8s.io/api created\nnetworkpolicy.extensions/all created' k apply -f - <<'YAML'
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: a.example.com, http: {paths: [{path: /, backend: {serviceName: web, servicePort: 80}}]}}]}
---
apiVersion: networking.k8s.io/v1beta1
kind: Ingress
metadata: {name: api}
spec: {backend: {serviceName: api, servicePort: http}}
---
apiVersion: extensions/v1beta1
kind: NetworkPolicy
metadata: {name: all}
spec: {podSelector: {}}
YAML
  is 'web 80' k get ingresses.v1beta1.extensions web -o 'jsonpath={.spec.rules[0].http.paths[0].backend.serviceName} {.spec.rules[0].http.paths[0].backend.servicePort}'
  is 'api {"name":"http"}' k get ingresses.v1.networking.k8s.io api -o 'jsonpath={.spec.defaultBackend.service.name} {.spec.defaultBackend.service.port}'
  has 'a.example.com' k get ingresses.v1beta1.extensions
  has 'a.example.com' k describe ingress web
  is 'ingress.extensions/web patched' k patch ingresses.v1beta1.extensions web --type=json \
    -p '[{"op":"replace","path":"/spec/rules/0/http/paths/0/backend/servicePort","value":"http"}]'
  is 'ingress.extensions "web" deleted' k delete ingresses.v1beta1.extensions web
}

jobs_and_budgets() {
  is 'cronjob.batch/nightly created' k create cronjob nightly --image=busybox --schedule='0 0 * * *' -- true
  is 'job.batch/now created' k create job now --from=cronjobs.v1beta1.batch/nightly
  is 'nightly Allow' k get cronjobs.v1beta1.batch nightly -o 'jsonpath={.metadata.name} {.spec.concurrencyPolicy}'
  has '0 0 * * *' k get cronjobs.v1beta1.batch
  has 'Concurrency Policy' k describe cronjob nightly
  is 'poddisruptionbudget.policy/web created' k create poddisruptionbudget web --selector=app=web --min-available=1
  has 'Min Available' bash -c '"$OLD_KUBECTL" get poddisruptionbudgets.v1beta1.policy | sed "s/MIN AVAILABLE/Min Available/"'
  has 'app=web' k describe pdb web
  is 'podsecuritypolicy.policy/all created' k create -f - <<'YAML'
apiVersion: policy/v1beta1
kind: PodSecurityPolicy
metadata: {name: all}
spec: {seLinux: {rule: RunAsAny}, runAsUser: {rule: RunAsAny}, fsGroup: {rule: RunAsAny}, supplementalGroups: {rule: RunAsAny}, volumes: ["*"]}
YAML
  has 'policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+' k get podsecuritypolicies.v1beta1.policy
  has 'RunAsAny' k describe psp all
  # A drain evicts by policy/v1beta1.
  is $'node/host created\npod/p created' k create -f - <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: host}
---
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: none}}
spec: {nodeName: host, terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}
YAML
  has 'node/host evicted' k drain host --force --timeout=60s --grace-period=0
}

definitions() {
  cat >"$scratch/tabs.yaml" <<'YAML'
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: tabs.example.com}
spec:
  group: example.com
  version: v1
  scope: Namespaced
  names: {plural: tabs, kind: Tab, shortNames: [tb]}
  subresources: {status: {}}
  validation: {openAPIV3Schema: {properties: {spec: {properties: {size: {type: integer, minimum: 1}}}}}}
  additionalPrinterColumns: [{name: Size, type: integer, JSONPath: .spec.size}]
YAML
  is 'customresourcedefinition.apiextensions.k8s.io/tabs.example.com created' k apply -f "$scratch/tabs.yaml"
  is 'customresourcedefinition.apiextensions.k8s.io/tabs.example.com condition met' \
    k wait --for=condition=Established --timeout=60s customresourcedefinitions.v1beta1.apiextensions.k8s.io/tabs.example.com
  is 'customresourcedefinition.apiextensions.k8s.io/tabs.example.com unchanged' k apply -f "$scratch/tabs.yaml"
  has 'must be false' k get customresourcedefinitions.v1beta1.apiextensions.k8s.io tabs.example.com \
    -o 'jsonpath={.status.conditions[?(@.type=="NonStructuralSchema")].message}'
  tab() { printf 'apiVersion: example.com/v1\nkind: Tab\nmetadata: {name: a}\nspec: {size: %s, more: kept}\n' "$1" | k apply -f -; }
  is 'tab.example.com/a created' tab 3
  is 'tab.example.com/a configured' tab 4
  has 'should be greater than or equal to 1' bash -c '! printf "apiVersion: example.com/v1\nkind: Tab\nmetadata: {name: b}\nspec: {size: 0}\n" | "$OLD_KUBECTL" create -f -'
  is $'NAME   SIZE\na      4' k get tb
  is kept k get tab a -o 'jsonpath={.spec.more}'
  is 'customresourcedefinition.apiextensions.k8s.io "tabs.example.com" deleted' k delete -f "$scratch/tabs.yaml"
}

# prune: what `apply --prune` knows is a list of versions of the time, among them extensions/v1beta1.
prune() {
  k create namespace pruned >/dev/null
  local one='apiVersion: v1
kind: ConfigMap
metadata: {name: kept, namespace: pruned, labels: {set: s}}'
  printf '%s\n---\napiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: gone, namespace: pruned, labels: {set: s}}\nspec: {backend: {serviceName: s, servicePort: 80}}\n' "$one" | k apply -n pruned -f - >/dev/null
  has 'ingress.extensions/gone pruned' bash -c 'printf "%s\n" "$0" | "$OLD_KUBECTL" apply -n pruned --prune -l set=s -f -' "$one"
}

k version >/dev/null
for _ in $(seq 600); do k get serviceaccount default >/dev/null 2>&1 && break; sleep 0.1; done
discovery
workloads
networks
jobs_and_budgets
definitions
prune
[ $failures = 0 ] || { echo "clients/kubectl: $failures failures of the old kubectl" >&2; exit 1; }
echo 'ok: kubectl 1.20 and removed versions'
