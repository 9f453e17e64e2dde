//! Counts of the objects of a namespace for a quota.
//!
//! A count takes long where there are many objects, and meanwhile they change. A tally remembers
//! what each object uses, so that it decodes only those that changed since it was refreshed last.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use pintle_admission::quota::usage::{self, ChargedUntil};
use pintle_meta::quantity::Quantity;
use pintle_meta::{GroupResource, Status};
use pintle_registry::{Object, Registry, Resource};
use pintle_value::{Str, Value};

use crate::pace::Pace;

/// The usage of a namespace by the names of some limits.
pub(super) struct Tally {
    namespace: Str,
    /// The spec of the quota, whose scopes decide which objects are counted.
    spec: Value,
    until: ChargedUntil,
    names: Vec<Str>,
    counted: Vec<Counted>,
}

/// The objects of one resource.
struct Counted {
    resource: Arc<Resource>,
    of: GroupResource,
    /// The names that count this resource, with their positions in the names of the tally.
    names: HashMap<Str, usize>,
    /// In order, so that the formats of sums do not change from count to count.
    objects: BTreeMap<Arc<str>, Known>,
    /// The usage of the last object.
    last: Option<Usage>,
}

/// Amounts by the positions of their names; the others are zero. Objects with equal usage share it.
type Usage = Arc<[(usize, Quantity)]>;

/// What is known of an object.
struct Known {
    revision: u64,
    usage: Usage,
    /// The number of the refresh that saw the object last.
    seen: u64,
}

impl Tally {
    /// An empty tally of a quota for some of its names.
    pub(super) fn new(
        registry: &Registry,
        namespace: &str,
        quota: &Value,
        names: Vec<Str>,
        until: ChargedUntil,
    ) -> Self {
        let positions: HashMap<&str, usize> =
            names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let (mut counted, mut seen) = (Vec::new(), HashSet::new());
        for resource in registry.resources().1.iter().filter(|resource| resource.namespaced()) {
            let of = resource.group_resource();
            if !seen.insert(of.clone()) {
                continue; // another version
            }
            // There may be thousands of resources and of names; most resources have one name.
            let mut own: HashMap<Str, usize> = HashMap::new();
            let count = usage::count_name(&of);
            own.extend(positions.get(count.as_str()).map(|at| (count.into(), *at)));
            if usage::has_own_names(&of) {
                let measured = positions.iter().filter(|(name, _)| usage::measures(&of, name));
                own.extend(measured.map(|(name, at)| (Str::from(*name), *at)));
            }
            if !own.is_empty() {
                let (resource, objects) = (resource.clone(), BTreeMap::new());
                counted.push(Counted { resource, of, names: own, objects, last: None });
            }
        }
        let spec = quota.get("spec").cloned().unwrap_or_default();
        Self { namespace: namespace.into(), spec, until, names, counted }
    }

    /// Whether a quota still has the spec for which this tally counts.
    pub(super) fn is_of(&self, quota: &Value) -> bool {
        *quota.get("spec").unwrap_or(&Value::Null) == self.spec
    }

    /// Reads the objects that changed since the last call; returns how many.
    pub(super) async fn refresh(&mut self, registry: &Registry) -> Result<usize, Status> {
        let (quota, mut changed) = (Value::from([("spec", self.spec.clone())]), 0);
        let mut pace = Pace::default();
        for counted in &mut self.counted {
            let objects = registry.objects_in(&counted.resource, &self.namespace);
            changed += counted.refresh(objects, (&quota, self.until), &mut pace).await?;
        }
        Ok(changed)
    }

    /// The sums by name.
    pub(super) fn used(&self) -> Vec<(&str, Quantity)> {
        let mut sums = vec![Quantity::ZERO; self.names.len()];
        for counted in &self.counted {
            for known in counted.objects.values() {
                for (at, amount) in &*known.usage {
                    sums[*at] = sums[*at] + *amount;
                }
            }
        }
        self.names.iter().map(Str::as_str).zip(sums).collect()
    }
}

impl Counted {
    async fn refresh(
        &mut self,
        objects: Vec<Arc<Object>>,
        context: (&Value, ChargedUntil),
        pace: &mut Pace,
    ) -> Result<usize, Status> {
        let seen = self.objects.values().map(|known| known.seen).max().unwrap_or(0) + 1;
        let (count, mut changed) = (objects.len(), 0);
        for object in objects {
            pace.step(0).await;
            let revision = object.revision.0;
            if let Some(known) = self.objects.get_mut(&object.item)
                && known.revision == revision
            {
                known.seen = seen;
                continue;
            }
            changed += 1;
            let usage = self.usage(&object, context, pace).await?;
            self.objects.insert(object.item.clone(), Known { revision, usage, seen });
        }
        if self.objects.len() > count {
            changed += self.objects.len() - count;
            self.objects.retain(|_, known| known.seen == seen);
        }
        Ok(changed)
    }

    /// The usage of an object; nothing if it is not in the quota's scopes.
    async fn usage(
        &mut self,
        object: &Object,
        (quota, until): (&Value, ChargedUntil),
        pace: &mut Pace,
    ) -> Result<Usage, Status> {
        let members = usage::members(&self.of);
        if members.is_empty()
            && let Some(last) = &self.last
        {
            return Ok(last.clone()); // it does not depend on the object
        }
        let tree = if members.is_empty() {
            Value::Null
        } else {
            pace.step(object.size()).await;
            object.excerpt(members)?
        };
        let mut amounts = Vec::new();
        if usage::in_scope(&self.of, quota, &tree) {
            let taken = usage::of(&self.of, &tree, until).into_iter();
            amounts.extend(taken.filter_map(|(name, amount)| {
                self.names.get(name.as_str()).map(|at| (*at, amount))
            }));
        }
        // Most objects of a namespace are alike.
        let usage = match &self.last {
            Some(last) if **last == *amounts => last.clone(),
            _ => Arc::from(amounts),
        };
        self.last = Some(usage.clone());
        Ok(usage)
    }
}
