#!/usr/bin/env bash
# client-go v0.15 against a Pintle of its own that serves removed versions of the API. RELEASES lists other
# releases of client-go: v0.18, v0.21, v0.24.
set -euo pipefail
cd "$(dirname "$0")"
command -v go >/dev/null || { ../skipped clients/go-v0.15 'there is no go on the path'; exit; }
export PINTLE_TEST_FLAGS='--runtime-config=api/legacy=true'
for release in ${RELEASES:-v0.15}; do
  flags=(-modfile="$release.mod" -tags=context)
  [ "$release" != v0.15 ] || flags=()
  ../fetch go mod download "${flags[@]:0:1}" || { ../skipped "clients/go-v0.15 $release" 'the client cannot be had'; continue; }
  echo "client-go $release"
  ../with-pintle go test "${flags[@]}" -count=1 ./...
done
