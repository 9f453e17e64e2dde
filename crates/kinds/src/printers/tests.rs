//! The rows of every kind (TBL-04, TBL-06, TBL-07, RES-01 to RES-69), as data.
//!
//! `tests/*.yaml` has, by kind (`GROUP/KIND`, or `KIND` in the core group), objects with their
//! cells and, if there are any, conditions. A text such as `now-5m` in an object is that time
//! before the time at which the Table is printed.

use std::collections::BTreeMap;

use pintle_meta::time;
use pintle_registry::table::{Printer, Row, UnixSeconds};
use pintle_value::{Str, Value, json, yaml};
use proptest::prelude::*;

use super::column::Column;
use super::{FIELDS, KINDS, printer};

const FILES: [&str; 5] = [
    include_str!("tests/autoscaling.yaml"),
    include_str!("tests/cluster.yaml"),
    include_str!("tests/core.yaml"),
    include_str!("tests/pods.yaml"),
    include_str!("tests/workloads.yaml"),
];

/// 2026-11-20T12:34:56Z.
const NOW: UnixSeconds = 1_795_178_096;

/// A row at a time: its cells and its conditions.
type Cells = (Vec<Value>, Vec<Value>);

fn cells(row: Row, now: UnixSeconds) -> Cells {
    (row.cells.iter().map(|cell| cell.at(now)).collect(), row.conditions)
}

/// Every row of the files: the kind, the object, and its expected cells.
fn examples() -> Vec<(String, Value, Cells)> {
    let files = FILES.map(|text| yaml::parse(text.as_bytes()).expect("test data are YAML"));
    let kinds = files.iter().flat_map(|file| file.as_object().expect("a map of kinds").iter());
    kinds
        .flat_map(|(kind, examples)| {
            examples.as_array().expect("a list of examples").iter().map(move |example| {
                let list = |key| example.get(key).and_then(Value::as_array).unwrap_or_default();
                let row = (list("cells").to_vec(), list("conditions").to_vec());
                let object = example.get("in").expect("an object").clone();
                (kind.to_string(), with_times(object), row)
            })
        })
        .collect()
}

/// The object with `now-5m` replaced by a time.
fn with_times(value: Value) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix("now") {
            Some(ago) => time::format((NOW - seconds(ago)) * time::SECOND).into(),
            None => text.into(),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(with_times).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(k, v)| (k, with_times(v))).collect())
        }
        other => other,
    }
}

/// The seconds in a text such as `-5m`; 0 if the text is empty.
fn seconds(ago: &str) -> i64 {
    let Some(text) = ago.strip_prefix('-') else { return 0 };
    let (number, unit) = text.split_at(text.len() - 1);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "y" => 365 * 86_400,
        _ => panic!("no unit: {ago}"),
    };
    number.parse::<i64>().expect("a number") * unit
}

/// The printer of `apps/Deployment` or `Pod`.
fn printer_of(kind: &str) -> std::sync::Arc<dyn Printer> {
    let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
    printer(group, kind)
}

#[test]
fn rows_are_upstreams() {
    let wrong: Vec<_> = examples()
        .into_iter()
        .filter_map(|(kind, object, expected)| {
            let row = cells(printer_of(&kind).row(&object), NOW);
            let text = json::to_string(&object);
            (row != expected).then(|| format!("{kind} {text}\n is {row:?}\n not {expected:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_kind_has_an_example() {
    let examples = examples();
    for kind in KINDS.iter().copied().flatten() {
        let slash = if kind.group.is_empty() { "" } else { "/" };
        let name = format!("{}{slash}{}", kind.group, kind.kind);
        assert!(examples.iter().any(|(kind, ..)| *kind == name), "no example of {name}");
    }
}

#[test]
fn a_kind_has_one_entry() {
    let mut entries = BTreeMap::new();
    for kind in KINDS.iter().copied().flatten() {
        let before = entries.insert((kind.group, kind.kind), ());
        assert!(before.is_none(), "{}/{} is there twice", kind.group, kind.kind);
    }
}

#[test]
fn flow_schemas_are_sorted_by_precedence() {
    let order = printer("flowcontrol.apiserver.k8s.io", "FlowSchema").order().expect("an order");
    let schema = |name: &str, precedence: i64| {
        Value::from([
            ("metadata", Value::from([("name", name)])),
            ("spec", Value::from([("matchingPrecedence", precedence)])),
        ])
    };
    let mut schemas = [schema("a", 10_000), schema("c", 9), schema("b", 9), schema("d", 1)];
    schemas.sort_by(order);
    let names = schemas.iter().map(|s| s.str_at(&["metadata", "name"]).unwrap_or_default());
    assert_eq!(names.collect::<Vec<_>>(), ["d", "b", "c", "a"]);
    assert!(printer("", "Pod").order().is_none());
}

/// The extracted facts of the release, if they are present.
fn facts() -> Option<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/v1.36/tables.json");
    let text = std::fs::read(path).ok()?;
    Some(json::parse(&text).expect("the facts are JSON"))
}

/// A kind as this file names it; the facts have `core/Pod` and `meta/Status` for `Pod` and
/// `Status`.
fn name(kind: &str) -> &str {
    kind.strip_prefix("core/").or_else(|| kind.strip_prefix("meta/")).unwrap_or(kind)
}

/// Upstream has columns for this kind, but its storage uses the default columns
/// (pkg/registry/storage/csistoragecapacity/storage), so clients see the default columns.
const DEFAULT_AFTER_ALL: &str = "storage.k8s.io/CSIStorageCapacity";

#[test]
fn columns_are_those_of_the_facts() {
    let Some(facts) = facts() else { return eprintln!("skipped: the facts are not there") };
    for (kind, facts) in facts.as_object().expect("a map of kinds").iter() {
        let Some(expected) = facts.get("columns").and_then(Value::as_array) else { continue };
        if kind == "_custom_resources" || kind == DEFAULT_AFTER_ALL {
            continue;
        }
        let text = |column: &Value, key| column.str_at(&[key]).unwrap_or_default().to_owned();
        let expected: Vec<_> = expected
            .iter()
            .map(|c| {
                let priority = c.get("priority").and_then(Value::as_int);
                (text(c, "name"), text(c, "type"), text(c, "format"), priority.unwrap_or_default())
            })
            .collect();
        let printer = printer_of(name(kind));
        let columns = printer.columns().iter().map(|c| {
            (c.name.to_string(), c.kind.to_owned(), c.format.to_string(), i64::from(c.priority))
        });
        assert_eq!(columns.collect::<Vec<_>>(), expected, "{kind}");
    }
}

/// The extracted facts describe the objects of their examples in prose, so the test cannot print
/// them. It checks that the cells of each are among the project's rows. Narrow facts have the first
/// cells only.
#[test]
fn examples_of_the_facts_are_among_ours() {
    let Some(facts) = facts() else { return eprintln!("skipped: the facts are not there") };
    let ours = examples();
    let mut count = 0;
    for (kind, facts) in facts.as_object().expect("a map of kinds").iter() {
        if kind.starts_with('_') || kind == DEFAULT_AFTER_ALL {
            continue;
        }
        for example in facts.get("examples").and_then(Value::as_array).unwrap_or_default() {
            let cells = example.get("cells").and_then(Value::as_array).expect("cells");
            if cells.iter().any(|cell| cell.as_str() == Some("2.3.4.5,3.4.5...")) {
                continue; // clipped, as servers never do
            }
            let wide = kind.ends_with("/Event") && cells.len() == 5;
            let matches = |(ours, _): &Cells| match wide {
                true => [0, 1, 2, 3, 6].iter().zip(cells).all(|(&i, cell)| ours[i] == *cell),
                false => ours.starts_with(cells),
            };
            let found = ours.iter().any(|(ours, _, row)| ours == name(kind) && matches(row));
            assert!(found, "{kind}: no example like {}", json::to_string(example));
            count += 1;
        }
    }
    assert!(count > 200, "only {count} examples");
}

/// Names that printers read, so that random objects have values for the columns.
const NAMES: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "name",
    "labels",
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
    "controller",
    "apiVersion",
    "kind",
    "containers",
    "initContainers",
    "initContainerStatuses",
    "containerStatuses",
    "conditions",
    "type",
    "state",
    "terminated",
    "waiting",
    "running",
    "lastState",
    "finishedAt",
    "restartCount",
    "template",
    "selector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "metrics",
    "currentMetrics",
    "resource",
    "target",
    "averageValue",
    "current",
    "subsets",
    "addresses",
    "ports",
    "port",
    "ip",
    "loadBalancer",
    "ingress",
    "rules",
    "host",
    "hard",
    "used",
    "capacity",
    "storage",
    "startTime",
    "completionTime",
    "pools",
    "totalDevices",
    "poolCount",
    "series",
    "count",
    "lastTimestamp",
    "spec.replicas",
    "replicas",
    "taint",
    "timeAdded",
];

fn any_object() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just("True".to_owned()),
        Just("now".to_owned()),
        Just("2026-04-01T12:00:00Z".to_owned()),
        Just("9999-12-31T23:59:59Z".to_owned()),
        Just("1e100".to_owned()),
        proptest::sample::select(NAMES).prop_map(str::to_owned),
        ".*",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-3_i64..200).prop_map(Value::Int),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::Float),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 128, 8, |inner| {
        let key = proptest::sample::select(NAMES).prop_map(Str::from);
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            3 => prop::collection::vec((key, inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An example in which a random value replaces one of the nodes.
fn mutated() -> impl Strategy<Value = Value> {
    let objects: Vec<_> = examples().into_iter().map(|(_, object, _)| object).collect();
    let path = prop::collection::vec(any::<prop::sample::Index>(), 0..8);
    (proptest::sample::select(objects), path, any_object()).prop_map(|(mut object, path, node)| {
        replace(&mut object, &path, node);
        object
    })
}

/// Replaces the node at a path, or the leaf at which that path ends.
fn replace(object: &mut Value, path: &[prop::sample::Index], node: Value) {
    match (object, path) {
        (Value::Array(items), [first, rest @ ..]) if !items.is_empty() => {
            let index = first.index(items.len());
            replace(&mut items[index], rest, node);
        }
        (Value::Object(members), [first, rest @ ..]) if !members.is_empty() => {
            let index = first.index(members.len());
            replace(members.iter_mut().nth(index).expect("an index in it").1, rest, node);
        }
        (leaf, _) => *leaf = node,
    }
}

proptest! {
    #[test]
    fn a_printer_has_a_row_for_any_tree(
        object in prop_oneof![any_object(), mutated()],
        now in prop_oneof![any::<i64>(), Just(NOW)],
    ) {
        for kind in KINDS.iter().copied().flatten() {
            let printer = printer(kind.group, kind.kind);
            let (cells, _) = cells(printer.row(&object), now);
            // IPAddresses have one cell more than columns (see their printer).
            let more = usize::from(kind.kind == "IPAddress");
            prop_assert_eq!(cells.len(), printer.columns().len() + more);
            let plain = |cell: &Value| {
                matches!(cell, Value::String(_) | Value::Int(_) | Value::Bool(_))
            };
            prop_assert!(cells.iter().all(plain), "{:?}", cells);
            if let Some(order) = printer.order() {
                prop_assert_eq!(order(&object, &object), std::cmp::Ordering::Equal);
            }
        }
    }
}

/// A misspelt field has no description.
#[test]
fn every_field_that_columns_refer_to_has_a_description() {
    for kind in KINDS.iter().copied().flatten() {
        for (type_name, field) in kind.columns.iter().filter_map(Column::described_field) {
            assert!(
                FIELDS.of_field(&type_name, field).is_some(),
                "{}: {type_name}.{field}",
                kind.kind
            );
        }
    }
}
