#!/usr/bin/env bash
# The helper for Node's tests.
set -euo pipefail
cd "$(dirname "$0")"
for tool in node npm; do
  command -v $tool >/dev/null || { echo "clients/pintle-test: skipped, there is no $tool on the path"; exit 0; }
done
../fetch npm ci --silent --no-audit --no-fund ||
  { echo 'clients/pintle-test: skipped, the client cannot be had'; exit 0; }
PINTLE=$(../program) node --test
