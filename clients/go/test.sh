#!/usr/bin/env bash
# client-go against a Pintle of its own (see ../with-pintle), with streaming lists and without.
set -euo pipefail
cd "$(dirname "$0")"
command -v go >/dev/null || { ../skipped clients/go 'there is no go on the path'; exit; }
../fetch go mod download || { ../skipped clients/go 'the client cannot be had'; exit; }
KUBE_FEATURE_WatchListClient=true ../with-kubelet ../with-pintle go test -count=1 ./...
KUBE_FEATURE_WatchListClient=false ../with-pintle go test -count=1 -run 'Informer' ./...
