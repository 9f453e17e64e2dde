//! The quota controller: counts existing objects when a quota is created or changed.
//!
//! Afterwards each write updates the usage itself (`pintle_admission::quota`). This controller only
//! counts objects that are older than the quota, those of extension API servers, and pods when the
//! grace period of one is over.
//!
//! Until a count is committed, each write of an object that it counts changes the quota, too, so
//! the commit conflicts. Then the objects that changed are counted while such writes are held back.

mod extensions;
mod recounts;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_admission::quota::is_status_current;
use pintle_admission::quota::usage::{self, ChargedUntil};
use pintle_meta::quantity::Quantity;
use pintle_meta::{GroupResource, Status, object};
use pintle_registry::Resource;
use pintle_registry::request::{WriteOptions, granted};
use pintle_value::{Map, Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, body, split, target, until};
use extensions::{Counts, Extensions, Recount};
use recounts::Recounts;
use tally::Tally;

const USER: &str = "system:serviceaccount:kube-system:resourcequota-controller";

/// How often the usage of a quota is written again after conflicts.
const ATTEMPTS_MAX: usize = 20;

/// How often changed objects are counted before writes are held back.
const PASSES_MAX: usize = 10;

/// If not more objects changed during a pass, the next one is short.
const CHANGES_FEW: usize = 500;

/// Counts until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let Some(quotas) = environment.resource("", "v1", "resourcequotas") else { return };
    let (extensions, recounts) = (Extensions::new(&environment), Recounts::new(&environment));
    let quotas = Quotas { environment: &environment, quotas, extensions, recounts };
    until(shutdown, work(&environment, &quotas)).await;
}

struct Quotas<'e> {
    environment: &'e Environment,
    quotas: Arc<Resource>,
    extensions: Extensions,
    recounts: Recounts,
}

impl Reconciler for Quotas<'_> {
    fn purpose(&self) -> &'static str {
        "count the usage of a quota"
    }

    fn queue(&self) -> &'static str {
        "resourcequota_primary"
    }

    fn sources(&self) -> Vec<Source> {
        let quotas = Source::new(&self.quotas, itself);
        std::iter::once(quotas).chain(self.recounts.source()).collect()
    }

    fn further_names(&self) -> BoxFuture<'_, Vec<Str>> {
        Box::pin(async {
            let registry = &self.environment.registry;
            let within = |namespaces: BTreeSet<Str>| -> Vec<Str> {
                let all = namespaces.iter().flat_map(|one| registry.objects_in(&self.quotas, one));
                all.map(|quota| Str::from(&*quota.item)).collect()
            };
            tokio::select! {
                again = self.extensions.next() => within(match again {
                    Recount::All => BTreeSet::from([Str::default()]),
                    Recount::Within(namespaces) => namespaces,
                }),
                namespaces = self.recounts.next() => {
                    let quotas = within(namespaces);
                    quotas.iter().for_each(|quota| self.recounts.add(quota));
                    quotas
                }
            }
        })
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(async move {
            if let Some(pod) = Recounts::pod_of(name) {
                return self.recounts.observe(self.environment, pod);
            }
            let recounts = self.recounts.take(name);
            let updated = self.update_usage(name, recounts).await;
            if recounts && !matches!(updated, Ok(Progress::Done)) {
                self.recounts.add(name);
            }
            updated
        })
    }
}

impl Quotas<'_> {
    /// Writes the usage of a quota, if it has to be counted. `recounts` asks for a count of pods
    /// although the status is current.
    async fn update_usage(&self, item: &str, recounts: bool) -> Result<Progress, Status> {
        let (namespace, name) = split(item);
        let registry = &self.environment.registry;
        let part = target(&self.quotas, namespace, name, "status");
        let Some(quota) = self.stored(item)? else { return Ok(Progress::Done) };
        let counts = self.extensions.count(namespace, &quota).await;
        let is_unanswered = counts.values().any(Option::is_none);
        let end = if is_unanswered { Progress::Waiting } else { Progress::Done };
        let was_current = is_status_current(&quota);
        let mut tally = self.tally(namespace, &quota, recounts).await?;
        for attempt in 0..ATTEMPTS_MAX {
            let needs_hold = attempt > 0 && tally.is_some();
            let _held = match needs_hold {
                true => Some(registry.hold_postings(namespace).await?),
                false => None,
            };
            // The quota is read before the objects: what changes later changes the quota.
            let Some(mut quota) = self.stored(item)? else { return Ok(Progress::Done) };
            if let Some(tally) = &mut tally {
                if !tally.is_of(&quota) || was_current && !is_status_current(&quota) {
                    return Ok(Progress::Waiting); // something else has to be counted
                }
                tally.refresh(registry).await?;
            }
            let Some(used) = used(&quota, tally.as_ref(), &counts) else { return Ok(end) };
            let hard = quota.at(&["spec", "hard"]).cloned().unwrap_or_else(Value::object);
            let status = quota.object_entry("status");
            status.insert("hard", hard);
            status.insert("used", used);
            // The resource version is that of the count: a concurrent write to the quota's objects
            // changes the quota, and the objects that changed are counted again.
            let (options, context) = (WriteOptions::default(), self.environment.context(USER));
            match registry.update(&part, &body(&quota), &options, &context, &granted).await {
                Err(status) if status.code == 409 => {}
                Err(status) if status.code != 404 => return Err(status),
                Ok(_) | Err(_) => return Ok(end),
            }
        }
        Ok(Progress::Waiting)
    }

    /// The stored quota, unless it is being deleted.
    fn stored(&self, item: &str) -> Result<Option<Value>, Status> {
        let (namespace, name) = split(item);
        let quota = self.environment.registry.peek(&self.quotas, namespace, name);
        let quota = quota.map(|quota| quota.tree()).transpose()?;
        Ok(quota.filter(|quota| !object::is_terminating(quota)))
    }

    /// Counts the objects of a quota whose usage is unknown, until few of them change during a
    /// pass.
    async fn tally(
        &self,
        namespace: &str,
        quota: &Value,
        recounts: bool,
    ) -> Result<Option<Tally>, Status> {
        let pods = GroupResource::new("", "pods");
        // The number of pods as objects does not change with time.
        let is_timed = |name: &Str| usage::measures(&pods, name) && !name.starts_with("count/");
        let hard = quota.at(&["spec", "hard"]).and_then(Value::as_object);
        let names = hard.into_iter().flat_map(Map::keys).cloned();
        let names: Vec<Str> = match is_status_current(quota) {
            false => names.collect(),
            true if recounts => names.filter(is_timed).collect(),
            true => return Ok(None), // each write to this server's objects updates it
        };
        let registry = &self.environment.registry;
        let until = ChargedUntil::for_count((self.environment.clock)());
        let mut tally = Tally::new(registry, namespace, quota, names, until);
        for _ in 0..PASSES_MAX {
            if tally.refresh(registry).await? <= CHANGES_FEW {
                break;
            }
        }
        Ok(Some(tally))
    }
}

/// Returns the usage for a quota's status; `None` if the status has it already.
fn used(quota: &Value, tally: Option<&Tally>, counts: &Counts) -> Option<Map> {
    let before = quota.at(&["status", "used"]).and_then(Value::as_object);
    let is_current = is_status_current(quota);
    let mut used = before.filter(|_| is_current).cloned().unwrap_or_default();
    let known = |name: &str| before.and_then(|before| before.get(name));
    for (name, sum) in tally.into_iter().flat_map(Tally::used) {
        // An equal amount stays as it is written.
        let is_known = |text: &str| text.parse::<Quantity>().is_ok_and(|known| known == sum);
        if !used.get(name).and_then(Value::as_str).is_some_and(is_known) {
            used.insert(name, sum.to_string());
        }
    }
    for (name, count) in counts {
        match count.map(|count| Value::from(count.to_string())).or_else(|| known(name).cloned()) {
            Some(amount) => used.insert(name.as_str(), amount),
            None => used.remove(name),
        };
    }
    (before != Some(&used) || !is_current).then_some(used)
}
