#!/usr/bin/env bash
# The helper for Go's tests.
set -euo pipefail
cd "$(dirname "$0")"
command -v go >/dev/null || { echo 'clients/pintletest: skipped, there is no go on the path'; exit 0; }
../fetch go mod download || { echo 'clients/pintletest: skipped, the client cannot be had'; exit 0; }
PINTLE=$(../program) go test -count=1 ./...
