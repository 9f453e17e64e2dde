#!/usr/bin/env bash
# The official JavaScript client against a Pintle of its own (see ../with-pintle).
set -euo pipefail
cd "$(dirname "$0")"
for tool in node npm; do
  command -v $tool >/dev/null || { echo "clients/javascript: skipped, there is no $tool on the path"; exit 0; }
done
../fetch npm ci --silent --no-audit --no-fund ||
  { echo 'clients/javascript: skipped, the client cannot be had'; exit 0; }
../with-kubelet ../with-pintle node --test
