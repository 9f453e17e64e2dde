#!/usr/bin/env bash
# The official Python client against a Pintle of its own (see ../with-pintle).
set -euo pipefail
cd "$(dirname "$0")"
command -v python3 >/dev/null || { echo 'clients/python: skipped, there is no python3 on the path'; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch" || { echo 'clients/python: skipped, python3 has no venv'; exit 0; }
../fetch "$scratch/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt ||
  { echo 'clients/python: skipped, the client cannot be had'; exit 0; }
../with-kubelet ../with-pintle "$scratch/bin/python" -m unittest -q test test_streams
