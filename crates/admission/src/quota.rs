//! ResourceQuota: what a namespace holds stays within its quotas.
//!
//! What a write takes or gives back is posted to the quotas' status in the commit of the write itself: the
//! numbers are right at every moment, and no two writes can take the same room. Writes that are charged at
//! the same time are committed together, with one new status. What a quota's spec
//! says counts once its status tells of it; until then, writes touch the quota, so that whoever counts
//! what is there counts again.

mod entry;
mod limited;
#[cfg(test)]
mod tests;
pub mod usage;

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_meta::quantity::Quantity;
use pintle_meta::{GroupResource, GroupVersionResource, Status};
use pintle_registry::admission::{Admission, Attributes, Operation};
use pintle_registry::allocation::Companion;
use pintle_registry::{Object, Registry, Unreadable};
use pintle_value::{Map, Str, Value};

use crate::known::Known;
use crate::pods::{Amounts, amounts};
use crate::{forbidden, written_name};
use entry::Entry;
pub use limited::Limited;

/// The plugin.
pub struct ResourceQuota {
    quotas: Known<Quota>,
    /// What nobody takes without a quota.
    limited: Vec<Limited>,
}

/// A quota as it is stored.
#[derive(Debug)]
struct Quota {
    name: Str,
    tree: Value,
    /// Its status tells of its spec.
    is_settled: bool,
    /// The limits that its status tells of: those that are kept.
    hard: Amounts,
    used: Amounts,
}

/// What a write makes of an object, as quotas see it.
struct Charge<'a> {
    resource: GroupResource,
    /// It may be refused; others are only counted.
    is_limited: bool,
    new: Held<'a>,
    old: Held<'a>,
}

/// A state of an object, and what it takes.
type Held<'a> = Option<(&'a Value, Amounts)>;

impl ResourceQuota {
    /// The plugin, which lets nobody take what is `limited` without a quota.
    pub const fn new(limited: Vec<Limited>) -> Self {
        Self { quotas: Known::new("", "resourcequotas", Quota::of), limited }
    }

    /// Refuses what is limited where none of the quotas covers it.
    fn require_cover(&self, charge: &Charge<'_>, quotas: &[Arc<Quota>]) -> Result<(), String> {
        let Some((object, taken)) = charge.new.as_ref().filter(|_| charge.is_limited) else {
            return Ok(());
        };
        let covers = |quota: &Arc<Quota>, name: &str| {
            quota.hard.contains_key(name) && quota.is_about(&charge.resource, object)
        };
        let limited = self.limited.iter().flat_map(|one| one.within(&charge.resource, taken));
        let bare: BTreeSet<&str> =
            limited.filter(|name| !quotas.iter().any(|quota| covers(quota, name))).collect();
        if bare.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = bare.into_iter().collect();
        Err(format!("insufficient quota to consume: {}", names.join(",")))
    }

    /// Refuses what is within limited scopes where no quota has a scope of the same name that the object is
    /// within.
    fn require_scopes(&self, charge: &Charge<'_>, quotas: &[Arc<Quota>]) -> Result<(), String> {
        let amounts = |held: &'_ Held<'_>| held.as_ref().map(|(_, amounts)| amounts.clone());
        let Some((object, _)) = charge.new.as_ref().filter(|_| charge.is_limited) else {
            return Ok(());
        };
        if amounts(&charge.new) == amounts(&charge.old) {
            return Ok(());
        }
        let limited = self.limited.iter().flat_map(|one| one.scopes_of(&charge.resource, object));
        let is_bare = |limited: &usage::Requirement<'_>| {
            let mut all = quotas.iter().flat_map(|quota| usage::requirements(&quota.tree));
            !all.any(|one| one.scope == limited.scope && one.holds(&charge.resource, object))
        };
        let bare: Vec<String> = limited.filter(is_bare).map(|scope| scope.to_string()).collect();
        if bare.is_empty() {
            return Ok(());
        }
        Err(format!("insufficient quota to match these scopes: [{}]", bare.join(" ")))
    }
}

impl Admission for ResourceQuota {
    fn before_commit(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<Companion>, Status> {
        if write.namespace.is_empty() || !may_matter(write) {
            return Ok(Vec::new());
        }
        let quotas = self.quotas.within(write.namespace, registry)?;
        if quotas.is_empty() && self.limited.is_empty() {
            return Ok(Vec::new());
        }
        let charge = Charge::of(write);
        let all = &quotas;
        let quotas = || quotas.iter().filter(|quota| !is_itself(write, quota));
        let refuse = |why: String| forbidden(write, write.object.unwrap_or(&Value::Null), &why);
        // What an object must say, each quota says before any tells of its room.
        quotas().try_for_each(|quota| quota.require(&charge)).map_err(refuse)?;
        self.require_cover(&charge, all).map_err(refuse)?;
        self.require_scopes(&charge, all).map_err(Status::without_reason)?;
        let mut companions = Vec::new();
        for quota in quotas() {
            if let Some(entry) = quota.entry(&charge) {
                companions.push(posting(write, registry, entry)?);
            }
        }
        Ok(companions)
    }
}

impl<'a> Charge<'a> {
    fn of(write: &Attributes<'a>) -> Self {
        let resource = write.resource.group_resource();
        let held =
            |object: Option<&'a Value>| object.map(|object| (object, usage::of(&resource, object)));
        let (new, old) = (held(write.object), held(write.old));
        let is_limited = write.subresource != "status"
            && (write.operation == Operation::Create
                || write.subresource == "resize"
                || resource.resource != "pods");
        Self { resource, is_limited, new, old }
    }
}

/// Only these change what they take in their lives; of others the number counts.
fn may_matter(write: &Attributes<'_>) -> bool {
    let resource = &write.resource.resource;
    let (group, plural) = (resource.group.as_str(), resource.resource.as_str());
    match write.operation {
        _ if plural == "events" && matches!(group, "" | "events.k8s.io") => false,
        Operation::Create => write.subresource.is_empty(),
        Operation::Delete => true,
        Operation::Connect => false,
        Operation::Update => {
            group.is_empty() && matches!(plural, "pods" | "services" | "persistentvolumeclaims")
        }
    }
}

fn is_itself(write: &Attributes<'_>, quota: &Quota) -> bool {
    let resource = &write.resource.resource;
    resource.group.is_empty() && resource.resource == "resourcequotas" && write.name == quota.name
}

/// An entry as the write's companion; by whom it is refused is known by then.
fn posting(write: &Attributes<'_>, registry: &Registry, entry: Entry) -> Result<Companion, Status> {
    let quotas = registry.resource(&GroupVersionResource::new("", "v1", "resourcequotas"));
    let quotas = quotas.ok_or_else(|| Status::internal("quotas are no longer served"))?;
    let refused = (write.resource.group_resource(), written_name(write, write.object));
    let name = entry.quota.name.clone();
    let post = move |quota: &mut Value| {
        let (resource, name) = &refused;
        entry.post(quota).map_err(|why| Status::forbidden(resource, name, &why))
    };
    Ok(Companion::posting(&quotas, (write.namespace, &name), write.now, Box::new(post)))
}

impl Quota {
    fn of(object: &Object) -> Result<Self, Unreadable> {
        Ok(Self::read(object.name(), object.tree()?))
    }

    fn read(name: &str, tree: Value) -> Self {
        let amounts_of = |member| amounts(tree.at(&["status", member]));
        Self {
            name: name.into(),
            is_settled: is_settled(&tree),
            hard: amounts_of("hard"),
            used: amounts_of("used"),
            tree,
        }
    }

    /// What it limits that is about a resource.
    fn limits_of(&self, resource: &GroupResource) -> Vec<&String> {
        self.hard.keys().filter(|name| usage::measures(resource, name)).collect()
    }

    fn is_about(&self, resource: &GroupResource, object: &Value) -> bool {
        usage::in_scope(resource, &self.tree, object)
    }

    /// Refuses an object that does not say what is counted here, or that nobody has counted yet.
    fn require(&self, charge: &Charge<'_>) -> Result<(), String> {
        let Some((object, _)) = charge.new.as_ref().filter(|_| charge.is_limited) else {
            return Ok(());
        };
        let names = self.limits_of(&charge.resource);
        if names.is_empty() || !self.is_about(&charge.resource, object) {
            return Ok(());
        }
        if let Some(missing) = usage::missing(&charge.resource, &names, object) {
            return Err(format!("failed quota: {}: must specify {missing}", self.name));
        }
        if names.iter().any(|name| !self.used.contains_key(*name)) {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            let (quota, names) = (&self.name, names.join(","));
            return Err(format!("status unknown for quota: {quota}, resources: {names}"));
        }
        Ok(())
    }

    /// What a write takes of the quota or gives back; `None` where it does not concern it.
    fn entry(self: &Arc<Self>, charge: &Charge<'_>) -> Option<Entry> {
        let resource = &charge.resource;
        let within = |held: &'_ Held<'_>| -> Option<Amounts> {
            let held = held.as_ref().filter(|(object, _)| self.is_about(resource, object));
            held.map(|(_, amounts)| amounts.clone())
        };
        let (new, old) = (within(&charge.new), within(&charge.old));
        if new.is_none() && old.is_none() {
            return None;
        }
        let taken = |amounts: &Option<Amounts>, name: &str| {
            let amount = amounts.as_ref().and_then(|amounts| amounts.get(name));
            amount.copied().unwrap_or(Quantity::ZERO)
        };
        let mut more = Amounts::new();
        for name in self.limits_of(resource) {
            let amount = taken(&new, name).checked_sub(&taken(&old, name));
            more.extend(amount.filter(|amount| !amount.is_zero()).map(|it| (name.clone(), it)));
        }
        let is_heard = self.is_to_be_counted(resource);
        let (quota, is_limited) = (self.clone(), charge.is_limited);
        (!more.is_empty() || is_heard).then_some(Entry { quota, more, is_limited, is_heard })
    }

    /// Whether someone is about to count objects of a resource for it, and must hear of one more.
    fn is_to_be_counted(&self, resource: &GroupResource) -> bool {
        let wanted = self.tree.at(&["spec", "hard"]).and_then(Value::as_object);
        let measured = |name: &Str| usage::measures(resource, name);
        !self.is_settled && wanted.is_some_and(|wanted| wanted.keys().any(measured))
    }
}

/// Whether a quota's status tells of its spec.
pub fn is_settled(quota: &Value) -> bool {
    let hard = quota.at(&["status", "hard"]).and_then(Value::as_object);
    let wanted = quota.at(&["spec", "hard"]).and_then(Value::as_object);
    let used = quota.at(&["status", "used"]).and_then(Value::as_object);
    let is_used = |name: &Str| used.is_some_and(|used| used.contains_key(name));
    match (hard, wanted) {
        (Some(hard), Some(wanted)) => hard == wanted && hard.keys().all(is_used),
        (hard, wanted) => hard.is_none_or(Map::is_empty) && wanted.is_none_or(Map::is_empty),
    }
}
