//! The metric families as rows: upstream's names, types, stability, labels and buckets.
//!
//! `docs/metrics.md` lists upstream's families that are absent, and a test compares both with
//! upstream's list.

mod access;
mod admission;
mod audits;
mod controllers;
mod effects;
mod fairness;
#[cfg(test)]
mod queries;
mod requests;
mod server;
mod snapshots;
mod storage;
mod streams;

use super::family::{Family, Kind, Stability, Unit};

/// Defines families as statics and a list of them.
macro_rules! families {
    ($($name:ident = $family:expr;)*) => {
        $(pub(crate) static $name: Family = $family;)*

        /// All families of this topic.
        pub(super) static ALL: &[&Family] = &[$(&$name),*];
    };
}
use families;

pub(crate) use access::*;
pub(crate) use admission::*;
pub(crate) use audits::*;
pub(crate) use controllers::*;
pub(crate) use effects::*;
pub(crate) use fairness::*;
pub(crate) use requests::*;
pub(crate) use server::*;
pub(crate) use snapshots::*;
pub(crate) use storage::*;
pub(crate) use streams::*;

/// All families.
pub(crate) fn all() -> impl Iterator<Item = &'static Family> {
    let topics = [
        access::ALL,
        admission::ALL,
        audits::ALL,
        controllers::ALL,
        effects::ALL,
        fairness::ALL,
        requests::ALL,
        server::ALL,
        snapshots::ALL,
        storage::ALL,
        streams::ALL,
    ];
    topics.into_iter().flatten().copied()
}

type Labels = &'static [&'static str];

const fn counter(
    name: &'static str,
    stability: Stability,
    labels: Labels,
    help: &'static str,
) -> Family {
    Family { name, kind: Kind::Counter, stability, labels, help }
}

const fn gauge(
    name: &'static str,
    stability: Stability,
    labels: Labels,
    help: &'static str,
) -> Family {
    Family { name, kind: Kind::Gauge, stability, labels, help }
}

/// A histogram of durations.
const fn seconds(
    name: &'static str,
    stability: Stability,
    labels: Labels,
    bounds: &'static [u64],
    help: &'static str,
) -> Family {
    Family { name, kind: Kind::Histogram(Unit::Seconds, bounds), stability, labels, help }
}

/// A histogram of sizes and numbers.
const fn whole(
    name: &'static str,
    stability: Stability,
    labels: Labels,
    bounds: &'static [u64],
    help: &'static str,
) -> Family {
    Family { name, kind: Kind::Histogram(Unit::Whole, bounds), stability, labels, help }
}

/// Bounds of which each is twice the previous one.
const fn doubling<const N: usize>(first_nanoseconds: u64) -> [u64; N] {
    let mut bounds = [first_nanoseconds; N];
    let mut at = 1;
    while at < N {
        bounds[at] = bounds[at - 1] * 2;
        at += 1;
    }
    bounds
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::family::Unit;
    use super::*;

    /// Upstream's families: name, kind, stability, labels, buckets.
    const UPSTREAM: &str = include_str!("families/upstream.tsv");
    const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md"));

    /// Upstream's rows by name.
    fn upstream() -> BTreeMap<&'static str, Vec<&'static str>> {
        let lines = UPSTREAM.lines().filter(|line| !line.starts_with('#'));
        let rows = lines.map(|line| line.split('\t').collect::<Vec<_>>());
        rows.map(|row| (row[0], row)).collect()
    }

    /// The names that `docs/metrics.md` lists as absent.
    fn absent() -> BTreeSet<&'static str> {
        let table = PAGE.split_once("## Absent metrics").unwrap().1;
        let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.rsplit_once(" | "));
        let names = rows.flat_map(|(_, names)| names.trim_end_matches(" |").split(", "));
        names.filter_map(|name| name.strip_prefix('`')?.strip_suffix('`')).collect()
    }

    /// Formats a family as a row of upstream's list.
    fn row(family: &Family) -> Vec<String> {
        let bound = |unit: Unit| move |bound: &u64| unit.bound(*bound);
        let (kind, bounds) = match family.kind {
            Kind::Counter => ("counter", Vec::new()),
            Kind::Gauge => ("gauge", Vec::new()),
            Kind::Histogram(unit, bounds) => {
                ("histogram", bounds.iter().map(bound(unit)).collect())
            }
        };
        let stability = match family.stability {
            Stability::Unstated => "",
            stability => stability.name(),
        };
        let parts = [family.name, kind, stability, &family.labels.join(","), &bounds.join(" ")];
        parts.map(str::to_owned).to_vec()
    }

    #[test]
    fn families_equal_upstreams() {
        let upstream = upstream();
        for family in all().filter(|family| !family.name.starts_with("pintle_")) {
            let theirs = upstream.get(family.name);
            let theirs = theirs.unwrap_or_else(|| panic!("upstream has no {}", family.name));
            assert_eq!(&row(family), theirs);
        }
    }

    #[test]
    fn absent_families_have_a_reason_in_the_docs() {
        let here: BTreeSet<_> = all().map(|family| family.name).collect();
        let absent = absent();
        let both: Vec<_> = here.intersection(&absent).collect();
        assert!(both.is_empty(), "absent in the docs, and served: {both:?}");
        let known: BTreeSet<_> = here.union(&absent).copied().collect();
        let upstream: BTreeSet<_> = upstream().into_keys().collect();
        let missing: Vec<_> = upstream.difference(&known).collect();
        assert!(missing.is_empty(), "absent without a reason in docs/metrics.md: {missing:?}");
        let unknown: Vec<_> = absent.difference(&upstream).collect();
        assert!(unknown.is_empty(), "upstream has no {unknown:?}");
    }

    #[test]
    fn names_are_unique_and_labels_sorted() {
        let mut names: Vec<_> = all().map(|family| family.name).collect();
        names.sort_unstable();
        let repeated = names.windows(2).find(|two| two[0] == two[1]);
        assert_eq!(repeated, None);
        for family in all() {
            assert!(family.labels.is_sorted(), "{}", family.name);
        }
    }
}
