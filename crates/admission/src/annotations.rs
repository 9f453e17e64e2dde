//! Audit annotations of plugins, under upstream's keys.

use std::collections::{BTreeMap, HashSet};

use pintle_meta::names::qualified_name;
use pintle_registry::admission::Attributes;
use pintle_value::{Str, Value, json};

/// The longest value of a policy's expression; longer ones are truncated.
const VALUE_BYTES_MAX: usize = 10 * 1024;
/// The maximum total size of one policy's values; a value that would exceed it is dropped.
const VALUES_BYTES_MAX: usize = 256 * 1024;

/// Annotates the audit events of a write, if it is audited. As in upstream, an annotation whose key
/// is not a qualified name with a prefix is dropped with a warning in the log: users choose some
/// keys.
pub(crate) fn annotate(write: &Attributes<'_>, key: &str, value: impl FnOnce() -> String) {
    let Some(recorder) = write.recorder else { return };
    if key.contains('/') && qualified_name(key).is_empty() {
        recorder.annotate(key, &value());
    } else {
        tracing::warn!(key, "an audit annotation has no valid key");
    }
}

/// Formats an object as JSON with its members in the given order.
pub(crate) fn ordered(members: &[(&str, &Value)]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("\"{name}\":{}", json::to_string(value)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// The audit values of one policy's expressions, for all its bindings and parameters.
#[derive(Debug, Default)]
pub(crate) struct Values {
    by_key: BTreeMap<Str, Vec<String>>,
    known: HashSet<(Str, String)>,
    bytes: usize,
}

impl Values {
    /// Adds a value, unless it is a duplicate.
    pub(crate) fn add(&mut self, key: &Str, value: &str) {
        let value = &value[..value.floor_char_boundary(VALUE_BYTES_MAX)];
        let bytes = self.bytes + value.len();
        if bytes <= VALUES_BYTES_MAX && self.known.insert((key.clone(), value.to_owned())) {
            self.bytes = bytes;
            self.by_key.entry(key.clone()).or_default().push(value.to_owned());
        }
    }

    /// Adds the values of another evaluation.
    pub(crate) fn extend(&mut self, other: Self) {
        for (key, values) in other.by_key {
            values.iter().for_each(|value| self.add(&key, value));
        }
    }

    /// Annotates the audit event of a write with the values.
    pub(crate) fn publish(self, policy: &str, write: &Attributes<'_>) {
        for (key, values) in self.by_key {
            annotate(write, &format!("{policy}/{key}"), || values.join(", "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_in_the_order_in_which_they_are_given() {
        let (webhook, patch) = (Value::from("a<b"), Value::from(vec![Value::from(1_i64)]));
        let json = ordered(&[("webhook", &webhook), ("patch", &patch)]);
        assert_eq!(json, r#"{"webhook":"a\u003cb","patch":[1]}"#);
    }

    #[test]
    fn values_are_unique_and_bounded() {
        let (key, mut values) = (Str::from("k"), Values::default());
        for value in ["b", "a", "b", ""] {
            values.add(&key, value);
        }
        assert_eq!(values.by_key[&key], ["b", "a", ""]);
        let long = "ä".repeat(VALUE_BYTES_MAX);
        values.add(&key, &long);
        assert_eq!(values.by_key[&key][3].len(), VALUE_BYTES_MAX);
        for number in 0..1000 {
            values.add(&key, &format!("{number}{long}"));
        }
        assert!(values.bytes <= VALUES_BYTES_MAX);
    }
}
