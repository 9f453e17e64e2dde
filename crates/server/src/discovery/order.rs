//! In which order discovery shows groups and versions: by upstream's priorities of the built-in ones, then
//! by stability, age and name.

use std::cmp::{Ordering, Reverse};

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

/// The order of two versions of a group: stable before beta before alpha, newer before older. Upstream's
/// priorities of the built-in versions say the same.
pub(super) fn versions(a: &str, b: &str) -> Ordering {
    rank(a).cmp(&rank(b)).then_with(|| a.cmp(b))
}

/// `v1` before `v1beta1` before `v1alpha1` before anything else.
fn rank(version: &str) -> (u8, Reverse<u32>, Reverse<u32>) {
    parse(version).map_or((3, Reverse(0), Reverse(0)), |(stage, major, minor)| {
        (stage, Reverse(major), Reverse(minor))
    })
}

fn parse(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = number(&rest[..digits])?;
    let (stage, minor) = match &rest[digits..] {
        "" => return Some((0, major, 0)),
        text => text
            .strip_prefix("beta")
            .map(|minor| (1, minor))
            .or_else(|| text.strip_prefix("alpha").map(|minor| (2, minor)))?,
    };
    Some((stage, major, number(minor)?))
}

/// A number without a sign or leading zeros.
fn number(digits: &str) -> Option<u32> {
    if digits.starts_with('0') || digits.starts_with('+') {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_ordered_by_stability_and_age() {
        // DISC-08
        let expected = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v01",
            "v1gamma1",
        ];
        let mut versions = expected;
        versions.reverse();
        versions.sort_by(|a, b| super::versions(a, b));
        assert_eq!(versions, expected);
    }

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
