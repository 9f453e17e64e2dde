use std::time::{Duration, Instant};

use super::*;
use crate::definition::Crd;

fn custom() -> Custom {
    let schemas = Schemas::new(Crd(&Value::Null), Arc::new(|_| None));
    Custom {
        schema: (Arc::new(schemas), "v1".into()),
        fields: Vec::new(),
        has_status: false,
        scale: None,
        is_terminating: false,
    }
}

fn with_finalizers(names: &[String]) -> Value {
    let names: Vec<Value> = names.iter().map(|name| Value::from(name.clone())).collect();
    Value::from([("metadata", Value::from([("finalizers", Value::from(names))]))])
}

/// An object of 3 MB has 220,000 finalizers; comparing each with each takes minutes.
#[test]
fn only_added_finalizers_cause_warnings_and_at_most_a_hundred() {
    let begin = Instant::now();
    let names = |from: usize, to: usize| (from..to).map(|n| format!("f{n:06}")).collect::<Vec<_>>();
    for (old, new, warnings, first) in [
        (names(0, 2), names(0, 2), 0, ""),
        (names(0, 2), names(0, 3), 1, "metadata.finalizers: \"f000002\""),
        (Vec::new(), [names(0, 3), names(0, 3)].concat(), 3, "metadata.finalizers: \"f000000\""),
        (names(0, 220_000), names(0, 220_000), 0, ""),
        (names(0, 220_000), names(7, 440_000), 100, "metadata.finalizers: \"f220000\""),
    ] {
        let found = custom().warnings(&with_finalizers(&new), Some(&with_finalizers(&old)));
        assert_eq!(found.len(), warnings);
        assert!(found.first().map_or("", String::as_str).starts_with(first));
    }
    assert!(begin.elapsed() < Duration::from_secs(30));
}
