#!/usr/bin/env bash
# fabric8's Java client against a Pintle of its own (see ../with-pintle). Its watches are WebSockets.
set -euo pipefail
cd "$(dirname "$0")"
skip() { echo "clients/java: skipped, $1"; exit 0; }
for tool in java mvn; do
  command -v $tool >/dev/null || skip "there is no $tool on the path"
done
maven() { timeout "$1" mvn --batch-mode --quiet "${@:2}"; }

# A run without tests fetches all that is needed, so that a repository out of reach is no failure.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
maven 180 test -Dtest='LifeTest#nothing' -Dsurefire.failIfNoSpecifiedTests=false >"$log" 2>&1 || {
  [ $? = 124 ] && skip 'the Maven repository did not give all that is needed within 180 s'
  grep -qE 'Could not (transfer|resolve|find)|could not be resolved' "$log" &&
    skip 'the Maven repository is out of reach'
  cat "$log" >&2
  exit 1
}
export -f maven
../with-pintle bash -c 'maven 120 --offline test'
