#!/usr/bin/env bash
# fabric8's Java client against a Pintle of its own (see ../with-pintle).
set -euo pipefail
cd "$(dirname "$0")"
for tool in java mvn; do
  command -v $tool >/dev/null || { echo "clients/java: skipped, there is no $tool on the path"; exit 0; }
done
../with-pintle mvn --batch-mode --quiet test
