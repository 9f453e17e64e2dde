#!/usr/bin/env bash
# The fixtures of pytest, installed as a package.
set -euo pipefail
cd "$(dirname "$0")"
command -v python3 >/dev/null || { echo 'clients/pytest-pintle: skipped, there is no python3 on the path'; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch" || { echo 'clients/pytest-pintle: skipped, python3 has no venv'; exit 0; }
../fetch "$scratch/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt . ||
  { echo 'clients/pytest-pintle: skipped, the client cannot be had'; exit 0; }
PINTLE=$(../program) "$scratch/bin/python" -m pytest -q -p no:cacheprovider tests
