#!/usr/bin/env bash
# The console in Chromium, on a Pintle of its own (see ../with-pintle). CHROMIUM is the browser; screenshots go
# to SCREENSHOTS, if that is set.
set -euo pipefail
cd "$(dirname "$0")"
for tool in node npm; do
  command -v $tool >/dev/null || { ../skipped clients/console "there is no $tool on the path"; exit; }
done
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$CHROMIUM" ] || { ../skipped clients/console 'there is no Chromium on the path'; exit; }
export CHROMIUM
../fetch npm ci --silent --no-audit --no-fund ||
  { ../skipped clients/console 'the tests cannot be had'; exit; }
PINTLE_TEST_FLAGS=--console ../with-pintle node --test --test-concurrency=1
