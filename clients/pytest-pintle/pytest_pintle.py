"""Fixtures of pytest that start Pintle, a Kubernetes API server; and the server itself, for other tools."""

import os
import pathlib
import select
import shutil
import subprocess

import kubernetes
import pytest

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10


@pytest.fixture(scope="session")
def pintle_flags():
    """The flags of the servers besides `--ephemeral`. A conftest.py overrides this fixture."""
    return []


@pytest.fixture
def pintle(pintle_flags):
    """A server of the test's own."""
    with Pintle(*pintle_flags) as server:
        yield server


@pytest.fixture(scope="session")
def pintle_session(pintle_flags):
    """A server that all tests of the session share."""
    with Pintle(*pintle_flags) as server:
        yield server


@pytest.fixture
def pintle_client(pintle):
    """The official client of the test's own server, as its administrator."""
    with pintle.client() as client:
        yield client


class Pintle:
    """A running server that stores nothing on disk.

    The server ends at `stop`, at the end of a `with` block, or with this process: it waits for the end of a pipe
    that only this process holds, and the system closes the pipe even if the process is killed.
    """

    def __init__(self, *flags):
        program = os.environ.get("PINTLE") or shutil.which("pintle")
        if program is None:
            raise FileNotFoundError("no Pintle: put `pintle` on the PATH, or let PINTLE name it")
        command = [program, "serve", "--ephemeral", "--secure-port=0", "--stop-at-eof", *flags]
        # The log goes to standard error, where pytest captures it. RUST_LOG=pintle=info shows more of it.
        environment = {"RUST_LOG": "error", **os.environ}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )
        try:
            self.url, self.kubeconfig = self._wait_until_ready()
        except BaseException:
            self._process.kill()
            self.stop()
            raise

    def _wait_until_ready(self):
        output = self._process.stdout
        if not select.select([output], [], [], START_SECONDS_MAX)[0]:
            raise TimeoutError(f"pintle is not ready after {START_SECONDS_MAX} seconds")
        # pintle ready url=https://127.0.0.1:36041 kubeconfig=/tmp/pintle-…/admin.kubeconfig
        prefix, _, rest = output.readline().rstrip("\n").partition(" url=")
        url, _, kubeconfig = rest.partition(" kubeconfig=")
        if prefix != "pintle ready":
            raise RuntimeError("pintle does not start; standard error has the reason")
        return url, pathlib.Path(kubeconfig)

    def client(self):
        """A new client of the server, as its administrator."""
        return kubernetes.config.new_client_from_config(str(self.kubeconfig))

    def stop(self):
        """Stops the server and waits until it has ended."""
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
