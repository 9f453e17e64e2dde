#!/usr/bin/env bash
# The extension of JUnit, with fabric8's client.
set -euo pipefail
cd "$(dirname "$0")"
skip() { ../skipped clients/junit-pintle "$1"; exit; }
for tool in java mvn; do
  command -v $tool >/dev/null || skip "there is no $tool on the path"
done

# A run without tests fetches all that is needed, so that a repository out of reach is no failure.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
../fetch mvn --batch-mode --quiet test -Dtest='PintleTest#nothing' \
  -Dsurefire.failIfNoSpecifiedTests=false >"$log" 2>&1 || {
  grep -q 'COMPILATION ERROR' "$log" && { cat "$log" >&2; exit 1; }
  skip 'the Maven repository does not give all that is needed'
}
PINTLE=$(../program) mvn --batch-mode --quiet --offline test
