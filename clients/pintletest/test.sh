#!/usr/bin/env bash
# The helper for Go's tests.
set -euo pipefail
cd "$(dirname "$0")"
command -v go >/dev/null || { ../skipped clients/pintletest 'there is no go on the path'; exit; }
../fetch go mod download || { ../skipped clients/pintletest 'the client cannot be had'; exit; }
PINTLE=$(../program) go test -count=1 ./...
