//! The resources of a pod as LimitRanges check them: those of each container, and those of the pod
//! as a whole. They are read once for all ranges of a namespace.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use pintle_meta::quantity::Quantity;
use pintle_value::Value;

use super::Limit;
use crate::pods::{Amounts, amounts, items, total};

/// The resources of a pod.
pub(super) struct PodResources<'p> {
    pod: &'p Value,
    containers: OnceCell<Group>,
    whole: OnceCell<Group>,
}

/// Requests and limits that a range checks in the same way.
pub(super) struct Group {
    /// Requests and limits, for each container.
    pub(super) members: Vec<[Amounts; 2]>,
    /// The extremes of requests and of limits, by name.
    extremes: [BTreeMap<String, Extremes>; 2],
}

/// The amounts of all members with a resource.
struct Extremes {
    members: usize,
    min: Quantity,
    max: Quantity,
}

impl<'p> PodResources<'p> {
    pub(super) const fn of(pod: &'p Value) -> Self {
        Self { pod, containers: OnceCell::new(), whole: OnceCell::new() }
    }

    /// The resources of containers and init containers.
    pub(super) fn containers(&self) -> &Group {
        self.containers.get_or_init(|| {
            let lists = ["containers", "initContainers"];
            let containers = lists.iter().flat_map(|list| items(self.pod, &["spec", list]));
            let of = |container: &Value, part| amounts(container.at(&["resources", part]));
            Group::new(containers.map(|one| [of(one, "requests"), of(one, "limits")]).collect())
        })
    }

    /// The resources of the whole pod.
    pub(super) fn whole(&self) -> &Group {
        self.whole.get_or_init(|| {
            Group::new(vec![[total(self.pod, "requests"), total(self.pod, "limits")]])
        })
    }
}

impl Group {
    fn new(members: Vec<[Amounts; 2]>) -> Self {
        let mut extremes = [BTreeMap::new(), BTreeMap::new()];
        for member in &members {
            for (all, own) in extremes.iter_mut().zip(member) {
                for (name, amount) in own {
                    note(all, name, *amount);
                }
            }
        }
        Self { members, extremes }
    }

    /// Whether no member violates a limit. If false, each member must be checked: the ratios of
    /// members are not known from the extremes. So the time for a range with which a pod agrees
    /// does not depend on the number of containers.
    pub(super) fn fits(&self, limit: &Limit) -> bool {
        let count = self.members.len();
        let [requests, limits] = &self.extremes;
        let all = |extremes: Option<&Extremes>, fits: &dyn Fn(&Extremes) -> bool| {
            extremes.is_some_and(|one| one.members == count && fits(one))
        };
        let any = |extremes: Option<&Extremes>, fits: &dyn Fn(&Extremes) -> bool| {
            extremes.is_none_or(fits)
        };
        let min_fits = |(name, min): (&String, &Quantity)| {
            let is_enough = |one: &Extremes| one.min >= *min;
            all(requests.get(name), &is_enough) && any(limits.get(name), &is_enough)
        };
        let max_fits = |(name, max): (&String, &Quantity)| {
            let is_little = |one: &Extremes| one.max <= *max;
            all(limits.get(name), &is_little) && any(requests.get(name), &is_little)
        };
        let ratio_fits = |(name, ratio): (&String, &Quantity)| {
            let is_positive = |one: &Extremes| one.min.signum() > 0;
            let (request, limit) = (requests.get(name), limits.get(name));
            let [least, most] = [request.map(|one| one.min), limit.map(|one| one.max)];
            let largest = most.zip(least).map(|(most, least)| most.to_f64() / least.to_f64());
            all(request, &is_positive)
                && all(limit, &is_positive)
                && largest.is_some_and(|largest| largest <= ratio.to_f64())
        };
        count == 0
            || limit.min.iter().all(min_fits)
                && limit.max.iter().all(max_fits)
                && limit.ratio.iter().all(ratio_fits)
    }
}

fn note(all: &mut BTreeMap<String, Extremes>, name: &str, amount: Quantity) {
    match all.get_mut(name) {
        Some(known) => {
            known.members += 1;
            known.min = known.min.min(amount);
            known.max = known.max.max(amount);
        }
        None => _ = all.insert(name.to_owned(), Extremes { members: 1, min: amount, max: amount }),
    }
}
