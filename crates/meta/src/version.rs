//! API versions and their priority.

use std::cmp::{Ordering, Reverse};

/// Compares two versions of a group by priority: stable versions first, then betas, then alphas,
/// newer ones first; then all others by name (upstream: `CompareKubeAwareVersionStrings`).
pub fn cmp(a: &str, b: &str) -> Ordering {
    rank(a).cmp(&rank(b)).then_with(|| a.cmp(b))
}

/// The rank of a version: `v1`, `v1beta1`, `v1alpha1`, others.
fn rank(version: &str) -> (u8, Reverse<u64>, Reverse<u64>) {
    parse(version).map_or((3, Reverse(0), Reverse(0)), |(stage, major, minor)| {
        (stage, Reverse(major), Reverse(minor))
    })
}

fn parse(version: &str) -> Option<(u8, u64, u64)> {
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

/// Parses a number without a sign or leading zeros.
fn number(digits: &str) -> Option<u64> {
    if digits.starts_with('0') || digits.starts_with('+') {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_ordered_by_priority() {
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
            "bar",
            "foo1",
            "foo10",
            "v01",
            "v1gamma1",
        ];
        let mut versions = expected;
        versions.reverse();
        versions.sort_by(|a, b| super::cmp(a, b));
        assert_eq!(versions, expected);
    }
}
