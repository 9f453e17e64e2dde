"""Each test has a server of its own, and none outlives its process."""

import concurrent.futures
import multiprocessing
import os
import socket
import subprocess
import sys
import time
import urllib.parse

import kubernetes
import pytest

import pytest_pintle
from pytest_pintle import Pintle

PATIENCE_SECONDS = 60
# A server that has to be killed takes longer to stop.
STOP_SECONDS_MAX = pytest_pintle.STOP_SECONDS_MAX / 2
POLICY = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}"
START_AND_WAIT = "import sys, pytest_pintle; print(pytest_pintle.Pintle().url, flush=True); sys.stdin.read()"


@pytest.mark.parametrize("_", range(2))
def test_a_server_is_the_tests_own(_, pintle_client):
    core = kubernetes.client.CoreV1Api(pintle_client)
    created = core.create_namespace({"metadata": {"name": "shop"}})
    assert created.metadata.uid


def test_the_session_has_one_server(pintle_session, pintle):
    assert pintle_session.url != pintle.url
    assert pintle_session.kubeconfig.exists()


def test_flags_are_passed(pintle_client):
    assert kubernetes.client.VersionApi(pintle_client).get_code().emulation_minor == "35"


def test_servers_start_in_parallel():
    with concurrent.futures.ThreadPoolExecutor() as pool:
        servers = list(pool.map(lambda _: Pintle(), range(4)))
    assert len({server.url for server in servers}) == 4
    for server in servers:
        server.stop()
        assert not server.kubeconfig.exists()
        assert refuses_connections(server.url)


def test_a_server_ends_with_a_process_that_is_killed():
    # The server inherits standard error, which ends when both processes have.
    command = [sys.executable, "-c", START_AND_WAIT]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        url = process.stdout.readline().strip()
        assert not refuses_connections(url)
        process.kill()
        process.communicate(timeout=PATIENCE_SECONDS)
    assert refuses_connections(url)


def test_a_server_ends_although_a_forked_process_holds_the_pipe():
    server = Pintle()
    forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(PATIENCE_SECONDS,), daemon=True)
    forked.start()
    stops(server)
    forked.kill()


def test_a_server_may_write_more_than_a_pipe_holds(tmp_path):
    (policy := tmp_path / "policy").write_text(POLICY)
    server = Pintle(f"--audit-policy-file={policy}", "--audit-log-path=-")
    with server.client() as client:
        core = kubernetes.client.CoreV1Api(client)
        for number in range(100):
            body = {"metadata": {"name": f"large-{number}"}, "data": {"text": "x" * 2048}}
            core.create_namespaced_config_map("default", body, _request_timeout=PATIENCE_SECONDS)
    stops(server)


def test_lines_before_the_one_of_a_ready_server_are_skipped(program):
    program(f"echo {'x' * 100_000}; echo pintle ready to sail; exec $PINTLE")
    stops(Pintle())


def test_a_server_that_is_not_ready_in_time_leaves_nothing(program, monkeypatch):
    directory = program("exec 3>&1 >/dev/null; exec $PINTLE")
    monkeypatch.setattr(pytest_pintle, "START_SECONDS_MAX", 5)
    with pytest.raises(TimeoutError):
        Pintle()
    assert not list(directory.iterdir())


def test_a_wrong_flag_is_an_error():
    with pytest.raises(RuntimeError, match="does not start"):
        Pintle("--nonsense")


def test_a_program_that_is_missing_is_an_error(monkeypatch):
    monkeypatch.delenv("PINTLE")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="PINTLE"):
        Pintle()


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Lets PINTLE name a script, in which $PINTLE is the server with its arguments. Its files go to the result."""

    def put(script):
        (directory := tmp_path / "files").mkdir()
        script = script.replace("$PINTLE", f"'{os.environ['PINTLE']}' \"$@\"")
        (path := tmp_path / "pintle").write_text(f"#!/bin/sh\nexport TMPDIR='{directory}'\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PINTLE", str(path))
        return directory

    return put


def stops(server):
    before = time.monotonic()
    server.stop()
    assert time.monotonic() - before < STOP_SECONDS_MAX
    assert not server.kubeconfig.exists()


def refuses_connections(url):
    address = urllib.parse.urlsplit(url)
    with socket.socket() as connection:
        return connection.connect_ex((address.hostname, address.port)) != 0
