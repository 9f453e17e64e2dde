//! The quota controller: counts existing objects when a quota is created or changed.
//!
//! Afterwards each write updates the usage itself (`pintle_admission::quota`). This controller only
//! counts objects that are older than the quota, and those of extension API servers.

mod extensions;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_admission::quota::{is_status_current, usage};
use pintle_meta::quantity::Quantity;
use pintle_meta::{Status, object};
use pintle_registry::Resource;
use pintle_registry::request::{WriteOptions, granted};
use pintle_value::{Map, Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, body, split, target, until};
use extensions::{Counts, Extensions, Recount};

const USER: &str = "system:serviceaccount:kube-system:resourcequota-controller";

/// How often a quota is counted again after conflicts.
const ATTEMPTS_MAX: usize = 100;

/// Counts until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let Some(quotas) = environment.resource("", "v1", "resourcequotas") else { return };
    let extensions = Extensions::new(&environment);
    let quotas = Quotas { environment: &environment, quotas, extensions };
    until(shutdown, work(&environment, &quotas)).await;
}

struct Quotas<'e> {
    environment: &'e Environment,
    quotas: Arc<Resource>,
    extensions: Extensions,
}

impl Reconciler for Quotas<'_> {
    fn purpose(&self) -> &'static str {
        "count the usage of a quota"
    }

    fn queue(&self) -> &'static str {
        "resourcequota_primary"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.quotas, itself)]
    }

    fn further_names(&self) -> BoxFuture<'_, Vec<Str>> {
        Box::pin(async {
            let registry = &self.environment.registry;
            let namespaces = match self.extensions.next().await {
                Recount::All => BTreeSet::from([Str::default()]),
                Recount::Within(namespaces) => namespaces,
            };
            let within = |namespace: &Str| registry.objects_in(&self.quotas, namespace);
            let quotas = namespaces.iter().flat_map(within);
            quotas.map(|quota| Str::from(&*quota.item)).collect()
        })
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.update_usage(name))
    }
}

impl Quotas<'_> {
    async fn update_usage(&self, item: &str) -> Result<Progress, Status> {
        let (namespace, name) = split(item);
        let registry = &self.environment.registry;
        let part = target(&self.quotas, namespace, name, "status");
        let stored = || -> Result<Option<Value>, Status> {
            let quota = registry.peek(&self.quotas, namespace, name);
            let quota = quota.map(|quota| quota.tree()).transpose()?;
            Ok(quota.filter(|quota| !object::is_terminating(quota)))
        };
        let Some(quota) = stored()? else { return Ok(Progress::Done) };
        let counts = self.extensions.count(namespace, &quota).await;
        for _ in 0..ATTEMPTS_MAX {
            let Some(mut quota) = stored()? else { return Ok(Progress::Done) };
            let end = if counts.values().any(Option::is_none) {
                Progress::Waiting
            } else {
                Progress::Done
            };
            let Some(used) = self.used(namespace, &quota, &counts)? else { return Ok(end) };
            let hard = quota.at(&["spec", "hard"]).cloned().unwrap_or_else(Value::object);
            let status = quota.object_entry("status");
            status.insert("hard", hard);
            status.insert("used", used);
            // The resource version is that of the count: a concurrent write to the quota's objects
            // changes the quota, and the count is repeated.
            let (options, context) = (WriteOptions::default(), self.environment.context(USER));
            match registry.update(&part, &body(&quota), &options, &context, &granted).await {
                Err(status) if status.code == 409 => {}
                Err(status) if status.code != 404 => return Err(status),
                Ok(_) | Err(_) => return Ok(end),
            }
        }
        Ok(Progress::Waiting)
    }

    /// Returns the usage for a quota's status; `None` if the status has it already.
    fn used(&self, ns: &str, quota: &Value, counts: &Counts) -> Result<Option<Map>, Status> {
        let before = quota.at(&["status", "used"]).and_then(Value::as_object);
        let is_current = is_status_current(quota);
        if is_current && counts.is_empty() {
            return Ok(None);
        }
        let hard = quota.at(&["spec", "hard"]).cloned().unwrap_or_else(Value::object);
        let mut used = match before.filter(|_| is_current) {
            Some(before) => before.clone(), // each write to this server's objects updates it
            None => self.count(ns, quota, &hard)?,
        };
        for (name, count) in counts {
            let known = before.and_then(|before| before.get(name.as_str()));
            match count.map(|count| Value::from(count.to_string())).or_else(|| known.cloned()) {
                Some(amount) => used.insert(name.as_str(), amount),
                None => used.remove(name),
            };
        }
        Ok((before != Some(&used) || !is_current).then_some(used))
    }

    /// Counts the objects in a namespace for each item of a quota.
    fn count(&self, namespace: &str, quota: &Value, hard: &Value) -> Result<Map, Status> {
        let names: Vec<&str> =
            hard.as_object().into_iter().flat_map(Map::keys).map(|n| &**n).collect();
        let mut used: BTreeMap<&str, Quantity> =
            names.iter().map(|name| (*name, Quantity::ZERO)).collect();
        let registry = &self.environment.registry;
        let mut seen = Vec::new();
        for resource in registry.resources().1.iter().filter(|resource| resource.namespaced()) {
            let of = resource.group_resource();
            let measured: Vec<&str> =
                names.iter().copied().filter(|name| usage::measures(&of, name)).collect();
            if measured.is_empty() || seen.contains(&of) {
                continue;
            }
            for object in registry.objects_in(resource, namespace) {
                let object = object.tree()?;
                if !usage::in_scope(&of, quota, &object) {
                    continue;
                }
                let taken = usage::of(&of, &object);
                for name in &measured {
                    let more = taken.get(*name).copied().unwrap_or(Quantity::ZERO);
                    let sum = used.get(name).and_then(|sum| sum.checked_add(&more));
                    used.extend(sum.map(|sum| (*name, sum)));
                }
            }
            seen.push(of);
        }
        let used = used.into_iter();
        Ok(used.map(|(name, sum)| (name.into(), Value::from(sum.to_string()))).collect())
    }
}
