//! The conditions of a terminating namespace, with upstream's reasons and messages.

use pintle_meta::time;
use pintle_registry::request::Now;
use pintle_value::{Map, Value};

use super::Left;

/// The condition types, each with reason and message for the status `False`.
const CONDITIONS: [(&str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

/// Returns the updated conditions; `None` if nothing changes.
pub(super) fn update(before: &[Value], left: &Left, now: Now) -> Option<Vec<Value>> {
    let mut conditions = before.to_vec();
    let mut changed = false;
    for (kind, good_reason, good_message) in CONDITIONS {
        let (status, reason, message) = match problem(kind, left) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", good_reason, good_message.to_owned()),
        };
        let known = conditions.iter_mut().find(|known| known.str_at(&["type"]) == Some(kind));
        let condition = match known {
            Some(known) => known.make_object(),
            None => {
                let mut condition = Map::new();
                condition.insert("type", kind);
                conditions.push(Value::Object(condition));
                conditions.last_mut().map(Value::make_object)?
            }
        };
        let says =
            |member: &str, text: &str| condition.get(member).and_then(Value::as_str) == Some(text);
        if says("status", status) && says("reason", reason) && says("message", &message) {
            continue;
        }
        if !says("status", status) {
            condition.insert("lastTransitionTime", time::format(now.unix_micros));
        }
        condition.insert("status", status);
        condition.insert("reason", reason);
        condition.insert("message", message);
        changed = true;
    }
    changed.then_some(conditions)
}

/// Returns reason and message of a condition with the status `True`.
fn problem(kind: &str, left: &Left) -> Option<(&'static str, String)> {
    match kind {
        "NamespaceDeletionDiscoveryFailure" if !left.silent.is_empty() => {
            let count = left.silent.len();
            let silent = left.silent.iter();
            let silent = silent.map(|of| format!("{of}: stale GroupVersion discovery: {of}"));
            let silent = silent.collect::<Vec<_>>().join(", ");
            let message = format!(
                "Discovery failed for some groups, {count} failing: unable to retrieve the complete list of \
                 server APIs: {silent}"
            );
            Some(("DiscoveryFailed", message))
        }
        "NamespaceDeletionContentFailure" if !left.failures.is_empty() => {
            let failures = match left.failures.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            let count = left.failures.len();
            let message =
                format!("Failed to delete all resource types, {count} remaining: {failures}");
            Some(("ContentDeletionFailed", message))
        }
        "NamespaceContentRemaining" if !left.objects.is_empty() => {
            let counted = left
                .objects
                .iter()
                .map(|(of, count)| format!("{of} has {count} resource instances"));
            let counted = counted.collect::<Vec<_>>().join(", ");
            Some(("SomeResourcesRemain", format!("Some resources are remaining: {counted}")))
        }
        "NamespaceFinalizersRemaining" if !left.finalizers.is_empty() => {
            let counted = left
                .finalizers
                .iter()
                .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"));
            let counted = counted.collect::<Vec<_>>().join(", ");
            let message =
                format!("Some content in the namespace has finalizers remaining: {counted}");
            Some(("SomeFinalizersRemain", message))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_report_the_remaining_content_of_a_namespace() {
        let at = |seconds: i64| Now { unix_micros: seconds * 1_000_000 };
        let mut left = Left::default();
        left.objects.insert("pods.".into(), 2);
        left.objects.insert("widgets.example.com".into(), 1);
        left.finalizers.insert("example.com/f".into(), 3);
        let first = update(&[], &left, at(0)).expect("all are new");
        let condition_of = |conditions: &[Value], kind: &str| {
            let condition = conditions.iter().find(|c| c.str_at(&["type"]) == Some(kind));
            let condition = condition.unwrap_or_else(|| panic!("no {kind}"));
            ["status", "reason", "message", "lastTransitionTime"]
                .map(|member| condition.str_at(&[member]).unwrap_or_default().to_owned())
        };
        assert_eq!(
            condition_of(&first, "NamespaceContentRemaining"),
            [
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: pods. has 2 resource instances, \
                 widgets.example.com has 1 resource instances",
                "1970-01-01T00:00:00Z",
            ]
        );
        assert_eq!(
            condition_of(&first, "NamespaceFinalizersRemaining")[2],
            "Some content in the namespace has finalizers remaining: example.com/f in 3 resource \
             instances"
        );
        assert_eq!(condition_of(&first, "NamespaceDeletionDiscoveryFailure")[0], "False");
        assert_eq!(update(&first, &left, at(9)), None, "nothing changed");

        // A condition whose message changes keeps its transition time; one whose status changes
        // does not.
        left.objects.remove("pods.");
        left.finalizers.clear();
        left.failures = vec!["a".into(), "b".into()];
        left.silent = vec!["a.io/v1".into()];
        let second = update(&first, &left, at(60)).expect("the conditions change");
        let remaining = condition_of(&second, "NamespaceContentRemaining");
        assert_eq!(remaining[3], "1970-01-01T00:00:00Z");
        assert!(remaining[2].ends_with(": widgets.example.com has 1 resource instances"));
        assert_eq!(
            condition_of(&second, "NamespaceFinalizersRemaining"),
            [
                "False",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
                "1970-01-01T00:01:00Z",
            ]
        );
        assert_eq!(
            condition_of(&second, "NamespaceDeletionContentFailure")[2],
            "Failed to delete all resource types, 2 remaining: [a, b]"
        );
        assert_eq!(
            condition_of(&second, "NamespaceDeletionDiscoveryFailure"),
            [
                "True",
                "DiscoveryFailed",
                "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server \
                 APIs: a.io/v1: stale GroupVersion discovery: a.io/v1",
                "1970-01-01T00:01:00Z",
            ]
        );
        assert_eq!(second.len(), 5);
    }
}
