"""Fixtures of pytest that start Pintle, a Kubernetes API server; and the server itself, for other tools."""

import io
import os
import pathlib
import queue
import re
import shutil
import subprocess
import threading

import kubernetes
import pytest

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10

# pintle ready url=https://127.0.0.1:36041 kubeconfig=/tmp/pintle-…/admin.kubeconfig
READY = re.compile(rb"pintle ready url=(\S+) kubeconfig=(.*)\n")


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
    whose other end this process holds, and the system closes that even if the process is killed. A process that is
    forked from this one holds it, too.
    """

    def __init__(self, *flags):
        program = os.environ.get("PINTLE") or shutil.which("pintle")
        if program is None:
            raise FileNotFoundError("no Pintle: put `pintle` on the PATH, or let PINTLE name it")
        command = [program, "serve", "--ephemeral", "--secure-port=0", "--stop-at-eof", *flags]
        # The log goes to standard error, where pytest captures it. RUST_LOG=pintle=info shows more of it.
        environment = {"RUST_LOG": "error", **os.environ}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, env=environment)
        self._ready = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="pintle", daemon=True)
        self._reader.start()
        try:
            self.url, self.kubeconfig = self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self):
        try:
            ready = self._ready.get(timeout=START_SECONDS_MAX)
        except queue.Empty:
            raise TimeoutError(f"pintle is not ready after {START_SECONDS_MAX} seconds") from None
        if ready is None:
            raise RuntimeError("pintle does not start; standard error has the reason")
        url, kubeconfig = map(os.fsdecode, ready.groups())
        return url, pathlib.Path(kubeconfig)

    def _read(self):
        """Reads what the server prints until it ends, because the server waits when the pipe is full."""
        # The buffer is this thread's alone: nothing else may wait for its lock when the interpreter ends.
        with io.BufferedReader(self._process.stdout) as lines:
            self._ready.put(next(filter(None, map(READY.fullmatch, lines)), None))
            while lines.read1():
                pass

    def client(self):
        """A new client of the server, as its administrator."""
        return kubernetes.config.new_client_from_config(str(self.kubeconfig))

    def stop(self):
        """Stops the server and waits until it has ended."""
        # The server finishes open requests after the first signal, and ends at once after the second. The pipe alone
        # would not do: a forked process may hold it.
        for end in (self._process.terminate, self._process.terminate, self._process.kill):
            end()
            self._process.stdin.close()
            self._reader.join(STOP_SECONDS_MAX)
            if not self._reader.is_alive():
                break
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
