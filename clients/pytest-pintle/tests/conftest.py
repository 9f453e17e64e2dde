"""Flags of the servers of these tests."""

import pytest


@pytest.fixture(scope="session")
def pintle_flags():
    return ["--emulated-version=1.35"]
