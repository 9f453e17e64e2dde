#!/usr/bin/env bash
# The fixtures of pytest, installed as a package.
set -euo pipefail
cd "$(dirname "$0")"
command -v python3 >/dev/null || { ../skipped clients/pytest-pintle 'there is no python3 on the path'; exit; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch" || { ../skipped clients/pytest-pintle 'python3 has no venv'; exit; }
../fetch "$scratch/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt . ||
  { ../skipped clients/pytest-pintle 'the client cannot be had'; exit; }
PINTLE=$(../program) "$scratch/bin/python" -m pytest -q -p no:cacheprovider tests
