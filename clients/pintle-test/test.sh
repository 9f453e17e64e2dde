#!/usr/bin/env bash
# The helper for Node's tests.
set -euo pipefail
cd "$(dirname "$0")"
for tool in node npm; do
  command -v $tool >/dev/null || { ../skipped clients/pintle-test "there is no $tool on the path"; exit; }
done
../fetch npm ci --silent --no-audit --no-fund ||
  { ../skipped clients/pintle-test 'the client cannot be had'; exit; }
PINTLE=$(../program) node --test
