#!/usr/bin/env bash
# The official Python client against a Pintle of its own (see ../with-pintle).
set -euo pipefail
cd "$(dirname "$0")"
command -v python3 >/dev/null || { ../skipped clients/python 'there is no python3 on the path'; exit; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch" || { ../skipped clients/python 'python3 has no venv'; exit; }
../fetch "$scratch/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt ||
  { ../skipped clients/python 'the client cannot be had'; exit; }
../with-kubelet ../with-pintle "$scratch/bin/python" -m unittest -q test test_streams
