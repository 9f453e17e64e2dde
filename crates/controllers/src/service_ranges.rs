//! The ServiceCIDR controller: sets their condition, and keeps a deleted one while addresses are in
//! use that no other ServiceCIDR contains (upstream: the service-cidr-controller).

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_effects::{Network, is_for_services};
use pintle_meta::{Status, object, time};
use pintle_registry::Resource;
use pintle_registry::request::{WriteOptions, granted};
use pintle_value::Value;

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, body, target, until};

const USER: &str = "system:serviceaccount:kube-system:service-cidrs-controller";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
const READY: &str = "Kubernetes Service CIDR is ready";
const IN_USE: &str = "There are still IPAddresses referencing the ServiceCIDR, please remove them or \
     create a new ServiceCIDR";
/// How long a deleted ServiceCIDR stays, so that none of its addresses is assigned during its
/// deletion.
const GRACE: i64 = 10 * time::SECOND;

/// Reconciles ServiceCIDRs until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let ranges = environment.resource("networking.k8s.io", "v1", "servicecidrs");
    let addresses = environment.resource("networking.k8s.io", "v1", "ipaddresses");
    let Some((ranges, addresses)) = ranges.zip(addresses) else { return };
    let ranges_controller = Ranges { environment: &environment, ranges, addresses };
    until(shutdown, work(&environment, &ranges_controller)).await;
}

struct Ranges<'e> {
    environment: &'e Environment,
    ranges: Arc<Resource>,
    addresses: Arc<Resource>,
}

impl Reconciler for Ranges<'_> {
    fn purpose(&self) -> &'static str {
        "update a ServiceCIDR"
    }

    fn queue(&self) -> &'static str {
        "ipaddresses"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.ranges, itself)]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.update(name))
    }
}

impl Ranges<'_> {
    async fn update(&self, name: &str) -> Result<Progress, Status> {
        let stored = self.environment.registry.peek(&self.ranges, "", name);
        let Some(mut range) = stored.map(|stored| self.ranges.tree(&stored)).transpose()? else {
            return Ok(Progress::Done);
        };
        let has_finalizer = object::finalizers(&range).any(|finalizer| finalizer == FINALIZER);
        if !object::is_terminating(&range) {
            if !has_finalizer {
                set_finalizer(&mut range, true);
                self.write(&range, "").await?;
                return Ok(Progress::Done); // this write enqueues it again
            }
            return self.set_ready(range, "True", "", READY).await;
        }
        if !has_finalizer {
            return Ok(Progress::Done); // finalizers of others remain
        }
        if self.is_in_use(&range)? {
            self.set_ready(range, "False", "Terminating", IN_USE).await?;
            return Ok(Progress::Waiting);
        }
        let deleted = time::parse(object::text(&range, "deletionTimestamp")).unwrap_or(0);
        if let Some(left) = self.environment.until(deleted.saturating_add(GRACE)) {
            return Ok(Progress::After(left));
        }
        set_finalizer(&mut range, false);
        self.write(&range, "").await?;
        Ok(Progress::Done)
    }

    /// Whether an address in use would belong to no ServiceCIDR without this one.
    fn is_in_use(&self, range: &Value) -> Result<bool, Status> {
        let registry = &self.environment.registry;
        let all = registry.objects(&self.ranges).map(|other| other.tree());
        let all: Vec<Value> = all.collect::<Result<_, _>>()?;
        let others = all.iter().filter(|other| object::name(other) != object::name(range));
        let others: Vec<Network> = others.flat_map(networks).collect();
        let own = networks(range);
        if own.iter().all(|own| others.iter().any(|other| other.covers(own))) {
            return Ok(false);
        }
        for address in registry.objects(&self.addresses) {
            let Ok(number) = address.name().parse() else { continue };
            let has = |network: &Network| network.contains(number);
            if own.iter().any(has) && !others.iter().any(has) && is_for_services(&address.tree()?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the condition `Ready`, if its status changes.
    async fn set_ready(
        &self,
        mut range: Value,
        status: &str,
        reason: &str,
        message: &str,
    ) -> Result<Progress, Status> {
        let conditions = range.at(&["status", "conditions"]).and_then(Value::as_array);
        let mut conditions = conditions.unwrap_or_default().to_vec();
        let is_ready = |condition: &Value| condition.str_at(&["type"]) == Some("Ready");
        let current = conditions.iter().find(|condition| is_ready(condition));
        if current.is_some_and(|current| current.str_at(&["status"]) == Some(status)) {
            return Ok(Progress::Done);
        }
        conditions.retain(|condition| !is_ready(condition));
        let now = (self.environment.clock)().unix_micros;
        conditions.push(Value::from([
            ("type", Value::from("Ready")),
            ("status", status.into()),
            ("reason", reason.into()),
            ("message", message.into()),
            ("lastTransitionTime", time::format(now).into()),
        ]));
        range.object_entry("status").insert("conditions", conditions);
        self.write(&range, "status").await?;
        Ok(Progress::Done)
    }

    async fn write(&self, range: &Value, part: &str) -> Result<(), Status> {
        let one = target(&self.ranges, "", object::name(range), part);
        let (body, options) = (body(range), WriteOptions::default());
        let context = self.environment.context(USER);
        let written = self.environment.registry.update(&one, &body, &options, &context, &granted);
        written.await.map(|_| ())
    }
}

/// Adds or removes the finalizer.
fn set_finalizer(range: &mut Value, is_set: bool) {
    let others = object::finalizers(range).filter(|finalizer| *finalizer != FINALIZER);
    let mut finalizers: Vec<String> = others.map(str::to_owned).collect();
    if is_set {
        finalizers.push(FINALIZER.to_owned());
    }
    object::metadata_mut(range).insert("finalizers", finalizers);
}

fn networks(range: &Value) -> Vec<Network> {
    let texts = range.at(&["spec", "cidrs"]).and_then(Value::as_array).unwrap_or_default();
    texts.iter().filter_map(|text| Network::parse(text.as_str()?).ok()).collect()
}
