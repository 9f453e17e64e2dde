#!/usr/bin/env bash
# Asks promtool whether the alerts are rules and whether the queries of the dashboard are PromQL.
set -euo pipefail
cd "$(dirname "$0")"
for tool in promtool python3; do
  command -v $tool >/dev/null || { ../clients/skipped deploy "there is no $tool on the path"; exit; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The value of `spec` is a rule file.
sed '1,/^spec:$/d; s/^  //' prometheus/rules.yaml >"$scratch/alerts.yaml"
# Each query becomes a recording rule. Grafana replaces its variables before Prometheus sees them.
python3 - grafana/pintle.json >"$scratch/queries.yaml" <<'PYTHON'
import json, sys
def queries(node):
    if isinstance(node, dict):
        yield from [node["expr"]] if "expr" in node else []
        node = list(node.values())
    for child in node if isinstance(node, list) else []:
        yield from queries(child)
rules = [
    {"record": f"query:{at}", "expr": query.replace("$__rate_interval", "5m").replace("$job", "j").replace("$instance", "i")}
    for at, query in enumerate(queries(json.load(open(sys.argv[1]))))
]
assert len(rules) > 20, "the dashboard has no queries"
assert not any("$" in rule["expr"] for rule in rules), "an unknown variable"
print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
PYTHON
promtool check rules "$scratch/alerts.yaml" "$scratch/queries.yaml"
