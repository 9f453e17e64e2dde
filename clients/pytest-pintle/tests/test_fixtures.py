"""Each test has a server of its own, and none outlives its process."""

import concurrent.futures
import socket
import subprocess
import sys
import urllib.parse

import kubernetes
import pytest

from pytest_pintle import Pintle

PATIENCE_SECONDS = 60
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


def test_a_wrong_flag_is_an_error():
    with pytest.raises(RuntimeError, match="does not start"):
        Pintle("--nonsense")


def test_a_program_that_is_missing_is_an_error(monkeypatch):
    monkeypatch.delenv("PINTLE")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="PINTLE"):
        Pintle()


def refuses_connections(url):
    address = urllib.parse.urlsplit(url)
    with socket.socket() as connection:
        return connection.connect_ex((address.hostname, address.port)) != 0
