#!/usr/bin/env bash
# fabric8's Java client against a Pintle of its own (see ../with-pintle). Its watches are WebSockets.
set -euo pipefail
cd "$(dirname "$0")"
skip() { ../skipped clients/java "$1"; exit; }
for tool in java mvn; do
  command -v $tool >/dev/null || skip "there is no $tool on the path"
done

# A run without tests fetches all that is needed, so that a repository out of reach is no failure.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
../fetch mvn --batch-mode --quiet test -Dtest='LifeTest#nothing' \
  -Dsurefire.failIfNoSpecifiedTests=false >"$log" 2>&1 || {
  grep -q 'COMPILATION ERROR' "$log" && { cat "$log" >&2; exit 1; }
  skip 'the Maven repository does not give all that is needed'
}
../with-kubelet ../with-pintle mvn --batch-mode --quiet --offline test
