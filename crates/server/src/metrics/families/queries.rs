//! Tests that dashboards and alerts query metrics and labels that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pintle_value::{Value, json, yaml};
use regex::Regex;

use super::{Family, Kind, all};

/// The metrics and labels that upstream's dashboard, rules and alerts query.
const MIXIN: &str = include_str!("mixin.tsv");
/// The labels that Prometheus adds to each metric.
const ADDED: [&str; 2] = ["instance", "job"];
/// The label of a histogram's buckets.
const BUCKET: &str = "le";

/// The expressions of a dashboard or of alerts: their values under `expr`, at any depth, and the
/// queries of variables.
fn expressions(value: &Value, found: &mut Vec<String>) {
    if let Some(items) = value.as_array() {
        items.iter().for_each(|item| expressions(item, found));
    }
    let Some(members) = value.as_object() else { return };
    for (key, member) in members.iter() {
        match (&**key, member.as_str()) {
            ("expr", Some(text)) => found.push(text.to_owned()),
            ("definition", Some(text)) => {
                let query = text.strip_prefix("label_values(").and_then(|it| it.rsplit_once(", "));
                let (selector, label) = query.expect("label_values(SELECTOR, LABEL)");
                found.push(format!("sum by ({}) ({selector})", label.trim_end_matches(')')));
            }
            _ => expressions(member, found),
        }
    }
}

/// The files of a folder of `deploy/`, with their expressions.
fn files(folder: &str) -> Vec<(PathBuf, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(folder);
    let entries = fs::read_dir(&root).expect("the folder exists");
    let paths = entries.map(|entry| entry.expect("it is readable").path());
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("it is readable");
        let parsed = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => json::parse(&bytes).expect("JSON"),
            _ => yaml::parse(&bytes).expect("YAML"),
        };
        let mut found = Vec::new();
        expressions(&parsed, &mut found);
        (path, found)
    };
    paths.map(read).collect()
}

/// Returns the metrics that an expression of PromQL names, each with the labels of its selector,
/// and the labels by which the expression aggregates.
fn names(expression: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let pattern = |text| Regex::new(text).expect("a valid pattern");
    let by = pattern(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)");
    let labels = by.captures_iter(expression).flat_map(|found| {
        found[1].split(',').map(|label| label.trim().to_owned()).collect::<Vec<_>>()
    });
    let labels = labels.collect();
    let rest = by.replace_all(expression, " ");
    // Matches a selector, a function's name or a word. It also matches ranges and texts as a whole,
    // so that words in them are not taken for metrics.
    let term = pattern(r#"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\}|\()?|"[^"]*"|\[[^\]]*\]"#);
    let matcher = pattern(r#"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)"#);
    let mut metrics = Vec::new();
    for found in term.captures_iter(&rest) {
        let (Some(name), behind) = (found.get(1), found.get(2).map_or("", |it| it.as_str())) else {
            continue;
        };
        if behind == "(" || ["and", "or", "unless", "bool"].contains(&name.as_str()) {
            continue;
        }
        let selected = matcher.captures_iter(behind).map(|label| label[1].to_owned()).collect();
        metrics.push((name.as_str().to_owned(), selected));
    }
    (metrics, labels)
}

/// The family of a metric's name, and whether it has the label of buckets.
fn family(name: &str) -> Option<(&'static Family, bool)> {
    let of = |name: &str| all().find(|family| family.name == name);
    let is_histogram = |family: &&Family| matches!(family.kind, Kind::Histogram(..));
    let part = |suffix| name.strip_suffix(suffix).and_then(of).filter(is_histogram);
    let plain = of(name).filter(|family| !is_histogram(family)).map(|family| (family, false));
    let bucket = part("_bucket").map(|family| (family, true));
    let number = part("_sum").or_else(|| part("_count")).map(|family| (family, false));
    plain.or(bucket).or(number)
}

/// The labels of a metric, with those that Prometheus adds.
fn labels(name: &str) -> BTreeSet<&'static str> {
    let (family, is_bucket) = family(name).unwrap_or_else(|| panic!("there is no metric {name}"));
    let own = family.labels.iter().copied().chain(ADDED);
    own.chain(is_bucket.then_some(BUCKET)).collect()
}

#[test]
fn dashboards_and_alerts_query_what_exists() {
    for (path, expressions) in [files("grafana"), files("prometheus")].concat() {
        assert!(!expressions.is_empty(), "{}: nothing is queried", path.display());
        for expression in expressions {
            let row = format!("{}: {expression}", path.display());
            let (metrics, aggregated) = names(&expression);
            assert!(!metrics.is_empty(), "{row}");
            let mut known = BTreeSet::new();
            for (metric, selected) in metrics {
                let labels = labels(&metric);
                let unknown = selected.iter().find(|label| !labels.contains(label.as_str()));
                assert_eq!(unknown, None, "{metric} has no such label: {row}");
                known.extend(labels);
            }
            let unknown = aggregated.iter().find(|label| !known.contains(label.as_str()));
            assert_eq!(unknown, None, "there is no such label: {row}");
        }
    }
}

#[test]
fn upstreams_dashboard_and_alerts_query_what_exists() {
    for line in MIXIN.lines().filter(|line| !line.starts_with('#')) {
        let (name, wanted) = line.split_once('\t').expect("a name and labels");
        let labels = labels(name);
        let missing = wanted.split(',').find(|label| !label.is_empty() && !labels.contains(label));
        assert_eq!(missing, None, "{name} has no such label");
    }
}

#[test]
fn names_of_an_expression_are_found() {
    let (metrics, aggregated) =
        names(r#"topk(10, sum by (a, b) (rate(m_total{x="1", y=~"2"}[5m]))) / n > 0 and on (c) o"#);
    let found: Vec<_> = metrics.iter().map(|(name, labels)| (&**name, labels.join(","))).collect();
    assert_eq!(found, [("m_total", "x,y".to_owned()), ("n", String::new()), ("o", String::new())]);
    assert_eq!(aggregated, ["a", "b", "c"]);
}
