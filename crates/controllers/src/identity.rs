//! The identity lease of a server, and the deletion of expired ones (upstream: the identity lease
//! controller and its garbage collector; LEA-01).

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{Reason, Status, object, time};
use pintle_registry::request::{DeleteOptions, WriteOptions, granted};
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

use crate::{Environment, SERVER, body, target, until};

const NAMESPACE: &str = "kube-system";
/// The label of identity leases, and its value.
const COMPONENT: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");
const HOSTNAME: &str = "kubernetes.io/hostname";
/// The annotation with the address at which other servers reach this one.
const ADDRESS: &str = "kubernetes.io/peer-advertise-address";
/// The annotation with a digest of the trusted keys, by which servers compare them.
const KEYS: &str = "pintle/trusted-keys";
const DURATION_SECONDS: i64 = 3600;
const RENEWAL: Duration = Duration::from_secs(10);
/// The most that is left of a lease's duration after three missed renewals.
const OVERDUE: i64 = (DURATION_SECONDS - 3 * RENEWAL.as_secs() as i64) * time::SECOND;
/// The pause before a renewal is retried after a conflict.
const RETRY: Duration = Duration::from_secs(1);
const COLLECTION: Duration = Duration::from_secs(3600);

/// The identity of a server.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name of the lease: the same at each start on a machine.
    pub name: Str,
    /// The holder of the lease: another one at each start.
    pub holder: Str,
    /// The host name of the machine.
    pub hostname: Str,
    /// The address and port at which other servers reach this one.
    pub address: Str,
    /// A digest of the authorities and keys by which it authenticates clients, if other servers
    /// need the same.
    pub keys: Option<Str>,
}

/// Renews the lease and deletes expired ones until shutdown.
pub async fn run(environment: Environment, identity: Identity, shutdown: impl Future<Output = ()>) {
    let Some(leases) = environment.resource("coordination.k8s.io", "v1", "leases") else { return };
    let leases = Leases { environment: &environment, identity, leases };
    until(shutdown, async {
        tokio::join!(leases.renew_for_ever(), leases.collect_for_ever());
    })
    .await;
}

struct Leases<'e> {
    environment: &'e Environment,
    identity: Identity,
    leases: Arc<Resource>,
}

impl Leases<'_> {
    async fn renew_for_ever(&self) {
        let mut warned = HashMap::new();
        loop {
            let pause = match self.renew().await {
                Ok(()) => RENEWAL,
                Err(status) if status.reason == Some(Reason::Conflict) => RETRY,
                Err(status) => {
                    tracing::warn!(%status, "cannot renew the lease of this server");
                    RENEWAL
                }
            };
            self.compare_keys(&mut warned);
            tokio::time::sleep(pause).await;
        }
    }

    /// Warns once about each live server that trusts other keys: each of the two refuses tokens and
    /// certificates that the other issues.
    fn compare_keys(&self, warned: &mut HashMap<Str, Str>) {
        for (server, keys) in self.strangers() {
            if warned.insert(server.clone(), keys.clone()).is_none_or(|before| before != keys) {
                tracing::warn!(
                    server = server.as_str(),
                    "another server trusts other certificate authorities or service account keys than this \
                     one; start all servers with the same --client-ca-file and --service-account-* files"
                );
            }
        }
    }

    /// Returns the live servers that trust other keys than this one, with those keys.
    fn strangers(&self) -> Vec<(Str, Str)> {
        let Some(own) = &self.identity.keys else { return Vec::new() };
        let stranger = |lease: Arc<Object>| {
            let lease = lease.tree().ok()?; // an unreadable lease is reported where it is collected
            let keys = object::annotations(&lease)?.get(KEYS)?.as_str()?;
            let lives = self.environment.until(end(&lease).saturating_sub(OVERDUE)).is_some();
            (lives && keys != own.as_str()).then(|| (object::name(&lease).into(), keys.into()))
        };
        let leases = self.environment.registry.objects_in(&self.leases, NAMESPACE);
        leases.into_iter().filter_map(stranger).collect()
    }

    async fn renew(&self) -> Result<(), Status> {
        let (registry, name) = (&self.environment.registry, &*self.identity.name);
        let (options, context) = (WriteOptions::default(), self.environment.context(SERVER));
        let stored = registry.peek(&self.leases, NAMESPACE, name);
        let Some(stored) = stored else {
            let all = target(&self.leases, NAMESPACE, "", "");
            let lease = body(&self.renewed(self.new_lease()));
            return registry.create(&all, &lease, &options, &context).await.map(|_| ());
        };
        let one = target(&self.leases, NAMESPACE, name, "");
        let lease = body(&self.renewed(self.leases.tree(&stored)?));
        registry.update(&one, &lease, &options, &context, &granted).await.map(|_| ())
    }

    fn new_lease(&self) -> Value {
        let Identity { name, holder, .. } = &self.identity;
        Value::from([
            ("apiVersion", Value::from("coordination.k8s.io/v1")),
            ("kind", self.leases.kind.clone().into()),
            ("metadata", Value::from([("name", &**name), ("namespace", NAMESPACE)])),
            ("spec", Value::from([("holderIdentity", &**holder)])),
        ])
    }

    /// Returns the renewed lease. It keeps its holder, as upstream's does after a restart.
    fn renewed(&self, mut lease: Value) -> Value {
        let now = (self.environment.clock)().unix_micros;
        let spec = lease.object_entry("spec");
        spec.insert("leaseDurationSeconds", DURATION_SECONDS);
        spec.insert("renewTime", time::format_micro(now));
        let metadata = object::metadata_mut(&mut lease);
        let annotations = metadata.entry_object("annotations");
        annotations.insert(ADDRESS, self.identity.address.clone());
        if let Some(keys) = &self.identity.keys {
            annotations.insert(KEYS, keys.clone());
        }
        let labels = metadata.entry_object("labels");
        labels.insert(COMPONENT.0, COMPONENT.1);
        labels.insert(HOSTNAME, self.identity.hostname.clone());
        lease
    }

    async fn collect_for_ever(&self) {
        loop {
            for lease in self.environment.registry.objects_in(&self.leases, NAMESPACE) {
                let collected = match lease.tree() {
                    Ok(lease) => self.collect(&lease).await,
                    Err(why) => Err(why.into()),
                };
                if let Err(status) = collected {
                    tracing::warn!(%status, "cannot delete an expired identity lease");
                }
            }
            tokio::time::sleep(COLLECTION).await;
        }
    }

    /// Deletes an expired identity lease.
    async fn collect(&self, lease: &Value) -> Result<(), Status> {
        let label = object::labels(lease).and_then(|labels| labels.get(COMPONENT.0)?.as_str());
        if label != Some(COMPONENT.1) || self.environment.until(end(lease)).is_some() {
            return Ok(());
        }
        let options = DeleteOptions {
            uid: Some(object::uid(lease).into()),
            resource_version: Some(object::text(lease, "resourceVersion").into()),
            ..DeleteOptions::default()
        };
        let one = target(&self.leases, NAMESPACE, object::name(lease), "");
        let context = self.environment.context(SERVER);
        match self.environment.registry.delete(&one, &options, &context).await {
            // Another server deleted the lease, or its holder renewed it.
            Err(status) if !matches!(status.reason, Some(Reason::NotFound | Reason::Conflict)) => {
                Err(status)
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Returns when a lease expires, in microseconds since 1970: the epoch if it has no valid times.
pub(crate) fn end(lease: &Value) -> i64 {
    let spec = |member: &str| lease.at(&["spec", member]);
    let renewed = spec("renewTime").and_then(Value::as_str).map(time::parse_micro);
    let seconds = spec("leaseDurationSeconds").and_then(Value::as_int);
    match (renewed, seconds) {
        (Some(Ok(renewed)), Some(seconds)) => {
            renewed.saturating_add(seconds.saturating_mul(time::SECOND))
        }
        _ => 0,
    }
}
