#!/usr/bin/env bash
# Compares Pintle's defaults and conversions of COUNT random definitions of v1beta1 with those of
# apiextensions-apiserver v0.21.
set -euo pipefail
cd "$(dirname "$0")"
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
go run . "${COUNT:-10000}" "${SEED:-$RANDOM}" >"$rows"
PINTLE_CONVERSIONS=$rows cargo test --manifest-path ../../Cargo.toml -p pintle-kinds --lib objects_of_a_file
