//! Discovery's order of groups and versions: upstream's priorities of the built-in ones.

use pintle_kinds::bootstrap::priority;

/// The priorities of a group that has none in upstream, such as a custom one, and of its versions.
const OTHER_GROUP: i64 = 1_000;
const OTHER_VERSION: i64 = 100;
/// The aggregator's own group comes before all others but the core group.
const AGGREGATOR: (&str, i64) = ("apiregistration.k8s.io", 20_001);
const CORE: i64 = i64::MAX;

/// The priority of a group, given with any of its versions.
pub(super) fn group_priority(group: &str, version: &str) -> i64 {
    match group {
        "" => CORE,
        _ if group == AGGREGATOR.0 => AGGREGATOR.1,
        _ => priority(group, version).map_or(OTHER_GROUP, |priority| i64::from(priority.group)),
    }
}

/// The priority of a version in its group.
pub(super) fn version_priority(group: &str, version: &str) -> i64 {
    priority(group, version).map_or(OTHER_VERSION, |priority| i64::from(priority.version))
}

#[cfg(test)]
mod tests {
    #[test]
    fn built_in_groups_come_first() {
        let expected = ["", "apiregistration.k8s.io", "apps", "batch", "a.example.com"];
        let mut groups = expected;
        groups.reverse();
        groups.sort_by_key(|group| std::cmp::Reverse(super::group_priority(group, "v1")));
        assert_eq!(groups, expected);
    }
}
