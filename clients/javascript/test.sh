#!/usr/bin/env bash
# The official JavaScript client against a Pintle of its own (see ../with-pintle).
set -euo pipefail
cd "$(dirname "$0")"
for tool in node npm; do
  command -v $tool >/dev/null || { ../skipped clients/javascript "there is no $tool on the path"; exit; }
done
../fetch npm ci --silent --no-audit --no-fund ||
  { ../skipped clients/javascript 'the client cannot be had'; exit; }
../with-kubelet ../with-pintle node --test
