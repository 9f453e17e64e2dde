"""Tests of the official Python client with pods: exec, logs, ports."""

import hashlib
import http.server
import os
import threading
import unittest
import uuid

from kubernetes import client, config
from kubernetes.stream import portforward, stream

KUBELETS = os.environ.get("PINTLE_TEST_KUBELETS", "").split()
PATIENCE = 120
PIECE = 1 << 14
BYTES_EACH_WAY = int(os.environ.get("PINTLE_TEST_BYTES", 8 << 20))


def setUpModule():
    config.load_kube_config()


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = f"you asked for {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@unittest.skipIf(len(KUBELETS) != 2, "there are no kubelets (see ../with-kubelet)")
class Streams(unittest.TestCase):
    """With a kubelet before v1.36, and with one of v1.36."""

    def setUp(self):
        self.core = client.CoreV1Api()
        self.namespace = f"python-{uuid.uuid4().hex[:8]}"
        self.core.create_namespace({"metadata": {"name": self.namespace}})
        self.addCleanup(self.core.delete_namespace, self.namespace)
        self.core.create_namespaced_service_account(self.namespace, {"metadata": {"name": "a"}})
        self.pods = [self.pod(name, int(port)) for name, port in zip(("old", "new"), KUBELETS)]

    def pod(self, name, port):
        node = f"{self.namespace}-{name}"
        self.core.create_node({"metadata": {"name": node}})
        self.addCleanup(self.core.delete_node, node)
        features = ["ExtendWebSocketsToKubelet"] if name == "new" else []
        self.core.patch_node_status(node, {"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "declaredFeatures": features,
        }})
        self.core.create_namespaced_pod(self.namespace, {"metadata": {"name": name}, "spec": {
            "serviceAccountName": "a", "nodeName": node, "containers": [{"name": "c", "image": "i"}],
        }})
        return name

    def run_in(self, pod, *command, **options):
        options = {"stdin": False, "stdout": True, "stderr": True, "tty": False, **options}
        return stream(self.core.connect_get_namespaced_pod_exec, pod, self.namespace, container="c",
                      command=list(command), _preload_content=False, **options)

    def test_commands_return_output_and_exit_codes(self):
        for pod in self.pods:
            for code, end in ((0, "true"), (1, "exit 1"), (137, "kill -9 $$")):
                with self.subTest(pod=pod, code=code):
                    session = self.run_in(pod, "sh", "-c", f"echo out; echo err >&2; {end}")
                    session.run_forever(timeout=PATIENCE)
                    self.assertEqual((session.read_stdout(), session.read_stderr()), ("out\n", "err\n"))
                    self.assertEqual(session.returncode, code)

    def test_input_ends(self):
        for pod in self.pods:
            with self.subTest(pod=pod):
                session = self.run_in(pod, "wc", "-c", stdin=True)
                session.write_stdin("x" * 1000)
                session.close_channel(0)
                session.run_forever(timeout=PATIENCE)
                self.assertEqual((session.read_stdout().strip(), session.returncode), ("1000", 0))

    def test_many_bytes_are_copied_both_ways(self):
        sent = os.urandom(BYTES_EACH_WAY)
        for pod in self.pods:
            with self.subTest(pod=pod):
                session = self.run_in(pod, "cat", stdin=True, stderr=False, binary=True)
                digest, place = hashlib.sha256(), 0
                while session.is_open():
                    if place < len(sent):
                        session.write_stdin(sent[place:place + PIECE])
                        place += PIECE
                        if place >= len(sent):
                            session.close_channel(0)
                    session.update(timeout=0 if place < len(sent) else PATIENCE)
                    # Read everything that has arrived: the server stops reading from a client that only writes.
                    while piece := session.read_stdout(timeout=0):
                        digest.update(piece)
                self.assertEqual(digest.digest(), hashlib.sha256(sent).digest())

    def test_terminals_are_resized(self):
        for pod in self.pods:
            with self.subTest(pod=pod):
                session = self.run_in(pod, "size", stdin=True, tty=True)
                session.write_channel(4, '{"Width":91,"Height":33}')
                session.run_forever(timeout=PATIENCE)
                self.assertEqual(session.read_stdout(), "91 columns, 33 rows\n")

    def test_logs_are_followed(self):
        for pod in self.pods:
            with self.subTest(pod=pod):
                log = self.core.read_namespaced_pod_log(
                    pod, self.namespace, container="c", follow=True, _preload_content=False)
                self.assertEqual(b"".join(log.stream()).count(b"\n"), 20)

    def test_ports_are_forwarded(self):
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
        self.addCleanup(site.server_close)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        self.addCleanup(site.shutdown)
        port = site.server_address[1]
        for pod in self.pods:
            with self.subTest(pod=pod):
                forward = portforward(self.core.connect_get_namespaced_pod_portforward, pod, self.namespace,
                                      ports=str(port))
                socket = forward.socket(port)
                socket.setblocking(True)
                socket.settimeout(PATIENCE)
                socket.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = b""
                while b"you asked for /x" not in answer:
                    piece = socket.recv(1024)
                    self.assertTrue(piece, answer)
                    answer += piece
                socket.close()
                self.assertIsNone(forward.error(port))


if __name__ == "__main__":
    unittest.main()
