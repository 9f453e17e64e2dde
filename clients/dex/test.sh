#!/usr/bin/env bash
# Logins at Dex, an OpenID provider that runs in the test's own process. PINTLE is the program; without it, it is
# built.
set -euo pipefail
cd "$(dirname "$0")"
command -v go >/dev/null || { echo 'clients/dex: skipped, there is no go on the path'; exit 0; }
../fetch go mod download || { echo 'clients/dex: skipped, Dex cannot be had'; exit 0; }
../with-pintle go test -count=1 ./...
