#!/usr/bin/env bash
# Logins at Dex, an OpenID provider that runs in the test's own process. PINTLE is the program; without it, it is
# built.
set -euo pipefail
cd "$(dirname "$0")"
command -v go >/dev/null || { ../skipped clients/dex 'there is no go on the path'; exit; }
../fetch go mod download || { ../skipped clients/dex 'Dex cannot be had'; exit; }
../with-pintle go test -count=1 ./...
