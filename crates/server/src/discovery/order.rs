//! In which order discovery shows groups: by upstream's priorities of the built-in ones, then by name.

use std::cmp::Ordering;

use pintle_kinds::bootstrap::priority;

/// The priority of a group that upstream gives none, such as a custom one.
const OTHER_GROUP: u32 = 1_000;
/// The aggregator's own group stands before all others but the core one.
const AGGREGATOR: (&str, u32) = ("apiregistration.k8s.io", 17_999);

/// The order of two groups, given with any of their versions.
pub(super) fn groups(a: (&str, &str), b: (&str, &str)) -> Ordering {
    group_priority(b).cmp(&group_priority(a)).then_with(|| a.0.cmp(b.0))
}

fn group_priority((group, version): (&str, &str)) -> u32 {
    if group == AGGREGATOR.0 {
        return AGGREGATOR.1;
    }
    priority(group, version).map_or(OTHER_GROUP, |priority| priority.group)
}

#[cfg(test)]
mod tests {
    #[test]
    fn built_in_groups_come_first() {
        let expected =
            ["", "apiregistration.k8s.io", "apps", "batch", "a.example.com", "b.example.com"];
        let mut groups = expected;
        groups.reverse();
        groups.sort_by(|a, b| super::groups((a, "v1"), (b, "v1")));
        assert_eq!(groups, expected);
    }
}
