//! ResourceQuota: refuses writes that exceed the quotas of their namespace.
//!
//! Each write commits its change of the usage together with itself, as a posting to the quota's
//! status. Usage is therefore exact at every revision, and concurrent writes cannot exceed a limit
//! together. Postings of concurrent writes are committed in one batch, with one new status.
//!
//! A new spec of a quota takes effect when the quota controller has counted the usage and copied
//! the limits to the status. Until then each write touches the quota, so that the controller's
//! count conflicts and is repeated.

mod grace;
mod limited;
mod posting;
mod scopes;
#[cfg(test)]
mod tests;
pub mod usage;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use pintle_meta::quantity::Quantity;
use pintle_meta::{GroupResource, GroupVersionResource, Status};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_registry::allocation::Companion;
use pintle_registry::{Object, Registry, Unreadable};
use pintle_value::{Map, Str, Value};

use crate::known::Known;
use crate::pods::{Amounts, amounts};
use crate::{forbidden, written_name};
use grace::ChargedUntil;
pub use limited::LimitedResource;
use posting::Posting;
use scopes::{Requirement, Scoped};

/// The plugin.
pub struct ResourceQuota {
    quotas: Known<Quota>,
    /// Resources that need a quota.
    limited: Vec<LimitedResource>,
}

/// A quota as it is stored.
#[derive(Debug)]
struct Quota {
    name: Str,
    tree: Value,
    /// Whether the status has the limits of the spec and a usage for each.
    is_status_current: bool,
    /// The limits of its status, which are the enforced ones.
    hard: Amounts,
    used: Amounts,
}

/// The properties of a write that quotas count. They are found once for all quotas of a namespace.
struct Charge<'a> {
    resource: GroupResource,
    /// Whether the write can be refused; otherwise it is only counted.
    is_limited: bool,
    new: Option<Held<'a>>,
    old: Option<Held<'a>>,
}

/// The new or old object with its usage.
struct Held<'a> {
    object: &'a Value,
    usage: Amounts,
    scoped: Scoped<'a>,
    /// See [`usage::lacking`].
    lacking: OnceCell<BTreeMap<&'static str, String>>,
}

impl ResourceQuota {
    /// The plugin; resources in `limited` need a quota.
    pub const fn new(limited: Vec<LimitedResource>) -> Self {
        Self { quotas: Known::new("", "resourcequotas", Quota::of), limited }
    }

    /// Refuses an object that uses a limited resource which no quota covers.
    fn require_cover(&self, charge: &Charge<'_>, quotas: &[Arc<Quota>]) -> Result<(), String> {
        let Some(new) = charge.new.as_ref().filter(|_| charge.is_limited) else { return Ok(()) };
        let limited =
            self.limited.iter().flat_map(|one| one.limited_names(&charge.resource, &new.usage));
        let limited: BTreeSet<&str> = limited.collect();
        if limited.is_empty() {
            return Ok(());
        }
        let about = quotas.iter().filter(|quota| new.is_counted_by(quota));
        let covered: HashSet<&str> =
            about.flat_map(|quota| quota.hard.keys()).map(String::as_str).collect();
        let uncovered: Vec<&str> = limited.into_iter().filter(|n| !covered.contains(n)).collect();
        if uncovered.is_empty() {
            return Ok(());
        }
        Err(format!("insufficient quota to consume: {}", uncovered.join(",")))
    }

    /// Refuses an object in a limited scope if no quota has this scope and matches the object,
    /// unless the write leaves the usage unchanged.
    fn require_scopes(&self, charge: &Charge<'_>, quotas: &[Arc<Quota>]) -> Result<(), String> {
        let Some(new) = charge.new.as_ref().filter(|_| charge.is_limited) else { return Ok(()) };
        if charge.old.as_ref().is_some_and(|old| old.usage == new.usage) {
            return Ok(());
        }
        let limited = self.limited.iter().flat_map(|one| one.scopes_of(&new.scoped));
        let is_uncovered = |limited: &Requirement<'_>| {
            let mut all = quotas.iter().flat_map(|quota| scopes::requirements(&quota.tree));
            !all.any(|one| one.scope == limited.scope && new.scoped.is_in(&one))
        };
        let uncovered: Vec<String> =
            limited.filter(is_uncovered).map(|scope| scope.to_string()).collect();
        if uncovered.is_empty() {
            return Ok(());
        }
        Err(format!("insufficient quota to match these scopes: [{}]", uncovered.join(" ")))
    }
}

impl Admission for ResourceQuota {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::BeforeCommit])
    }

    fn before_commit(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<Companion>, Status> {
        if write.namespace.is_empty() || !may_change_usage(write) {
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
        // As in upstream, all quotas check for required members before any checks its limits.
        quotas().try_for_each(|quota| quota.require(&charge)).map_err(refuse)?;
        self.require_cover(&charge, all).map_err(refuse)?;
        self.require_scopes(&charge, all).map_err(Status::without_reason)?;
        let mut companions = Vec::new();
        for quota in quotas() {
            if let Some(posting) = quota.posting(&charge) {
                companions.push(companion(write, registry, posting)?);
            }
        }
        Ok(companions)
    }
}

impl<'a> Charge<'a> {
    fn of(write: &Attributes<'a>) -> Self {
        let resource = write.resource.group_resource();
        let until = ChargedUntil::for_write(write.now);
        let held = |object: Option<&'a Value>| object.map(|one| Held::of(&resource, one, until));
        let (new, old) = (held(write.object), held(write.old()));
        let is_limited = write.subresource != "status"
            && (write.operation == Operation::Create
                || write.subresource == "resize"
                || resource.resource != "pods");
        Self { resource, is_limited, new, old }
    }
}

impl<'a> Held<'a> {
    fn of(resource: &GroupResource, object: &'a Value, until: ChargedUntil) -> Self {
        let (usage, scoped) = (usage::of(resource, object, until), Scoped::new(resource, object));
        Self { object, usage, scoped, lacking: OnceCell::new() }
    }

    /// Whether the object is in all scopes of a quota.
    fn is_counted_by(&self, quota: &Quota) -> bool {
        self.scoped.is_in_scopes_of(&quota.tree)
    }

    /// The required names among `names` that containers of the object do not set, with the
    /// containers: `cpu for: a,b; memory for: a`.
    fn missing(&self, resource: &GroupResource, names: &[&String]) -> Option<String> {
        let lacking = self.lacking.get_or_init(|| usage::lacking(resource, self.object));
        let parts = names.iter().filter_map(|name| lacking.get(name.as_str()));
        let parts: Vec<&str> = parts.map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// True for a write that can change usage: a create, a delete, or an update of a resource whose
/// objects change their usage during their life. Events are not counted.
fn may_change_usage(write: &Attributes<'_>) -> bool {
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

/// Returns the posting as a companion of the write. A refusal names the written object.
fn companion(
    write: &Attributes<'_>,
    registry: &Registry,
    posting: Posting,
) -> Result<Companion, Status> {
    let quotas = registry.resource(&GroupVersionResource::new("", "v1", "resourcequotas"));
    let quotas = quotas.ok_or_else(|| Status::internal("quotas are no longer served"))?;
    let written = (write.resource.group_resource(), written_name(write, write.object));
    let name = posting.quota.name.clone();
    let post = move |quota: &mut Value| {
        let (resource, name) = &written;
        posting.post(quota).map_err(|why| Status::forbidden(resource, name, &why))
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
            is_status_current: is_status_current(&tree),
            hard: amounts_of("hard"),
            used: amounts_of("used"),
            tree,
        }
    }

    /// Returns the names of the limits that count objects of a resource.
    fn limits_on(&self, resource: &GroupResource) -> Vec<&String> {
        self.hard.keys().filter(|name| usage::measures(resource, name)).collect()
    }

    /// Refuses an object that lacks a member which this quota counts. Also refuses the object if
    /// the quota limits its resource and the quota controller has not counted the usage yet.
    fn require(&self, charge: &Charge<'_>) -> Result<(), String> {
        let Some(new) = charge.new.as_ref().filter(|_| charge.is_limited) else { return Ok(()) };
        let names = self.limits_on(&charge.resource);
        if names.is_empty() || !new.is_counted_by(self) {
            return Ok(());
        }
        if let Some(missing) = new.missing(&charge.resource, &names) {
            return Err(format!("failed quota: {}: must specify {missing}", self.name));
        }
        if names.iter().any(|name| !self.used.contains_key(*name)) {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            let (quota, names) = (&self.name, names.join(","));
            return Err(format!("status unknown for quota: {quota}, resources: {names}"));
        }
        Ok(())
    }

    /// Returns the posting of a write; `None` if the quota does not count the object, or if the
    /// write does not change the usage and need not touch the quota.
    fn posting<'a>(self: &Arc<Self>, charge: &'a Charge<'_>) -> Option<Posting> {
        let resource = &charge.resource;
        let within = |held: &'a Option<Held<'_>>| -> Option<&'a Amounts> {
            let held = held.as_ref().filter(|held| held.is_counted_by(self));
            held.map(|held| &held.usage)
        };
        let (new, old) = (within(&charge.new), within(&charge.old));
        if new.is_none() && old.is_none() {
            return None;
        }
        let usage = |amounts: Option<&Amounts>, name: &str| {
            let amount = amounts.and_then(|amounts| amounts.get(name));
            amount.copied().unwrap_or(Quantity::ZERO)
        };
        let mut change = Amounts::new();
        for name in self.limits_on(resource) {
            let amount = usage(new, name) - usage(old, name);
            if !amount.is_zero() {
                change.insert(name.clone(), amount);
            }
        }
        let needs_touch = self.needs_count(resource);
        let (quota, is_limited) = (self.clone(), charge.is_limited);
        (!change.is_empty() || needs_touch).then_some(Posting {
            quota,
            change,
            is_limited,
            needs_touch,
        })
    }

    /// Whether the quota controller has yet to count objects of a resource for this quota.
    fn needs_count(&self, resource: &GroupResource) -> bool {
        let spec = self.tree.at(&["spec", "hard"]).and_then(Value::as_object);
        let measured = |name: &Str| usage::measures(resource, name);
        !self.is_status_current && spec.is_some_and(|spec| spec.keys().any(measured))
    }
}

/// Whether a quota's status has the limits of its spec and a usage for each.
pub fn is_status_current(quota: &Value) -> bool {
    let hard = quota.at(&["status", "hard"]).and_then(Value::as_object);
    let spec = quota.at(&["spec", "hard"]).and_then(Value::as_object);
    let used = quota.at(&["status", "used"]).and_then(Value::as_object);
    let is_used = |name: &Str| used.is_some_and(|used| used.contains_key(name));
    match (hard, spec) {
        (Some(hard), Some(spec)) => hard == spec && hard.keys().all(is_used),
        (hard, spec) => hard.is_none_or(Map::is_empty) && spec.is_none_or(Map::is_empty),
    }
}
