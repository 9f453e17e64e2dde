use std::time::{Duration, Instant};

use pintle_value::Value;

use super::*;

/// A definition whose versions have the fields that `fields` returns.
fn definition(versions: usize, fields: impl Fn(usize) -> Vec<String>) -> Value {
    let version = |i: usize| {
        let fields = fields(i).into_iter().map(|path| Value::from([("jsonPath", path)]));
        Value::from([
            ("name", Value::from(format!("v{}", i + 1))),
            ("selectableFields", Value::from(fields.collect::<Vec<_>>())),
        ])
    };
    let versions: Vec<Value> = (0..versions).map(version).collect();
    Value::from([("spec", Value::from([("versions", Value::from(versions))]))])
}

/// Versions share an index while their fields are few; the memory is linear in the definition.
#[test]
fn versions_list_a_bounded_number_of_fields() {
    let begin = Instant::now();
    let one = |i: usize| vec![format!(".spec.f{i}"), format!(".spec.f{i}")];
    let eight = |i: usize| (0..8).map(|j| format!(".spec.f{i}x{j}")).collect();
    let same = |_: usize| vec![".spec.same".to_owned()];
    for (versions, fields, listed, own) in [
        (3, &one as &dyn Fn(usize) -> Vec<String>, 3, 1),
        (3, &eight, 24, 8),
        (1_000, &same, 1, 1),
        (3_800, &eight, 8, 8),
    ] {
        let crd = definition(versions, fields);
        let all = super::fields(Crd(&crd));
        for (i, version) in Crd(&crd).versions().enumerate() {
            let found = super::listed(&all, version);
            let labels: Vec<&str> =
                found.iter().map(|field| &*field.label).filter(|label| !label.is_empty()).collect();
            assert_eq!((found.len(), labels.len()), (listed, own), "{versions} {i}");
            assert_eq!(labels[0], &fields(i)[0][1..]);
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(60));
}
