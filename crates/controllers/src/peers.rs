//! The addresses of all servers of a database, in the endpoints of the service `kubernetes`
//! (upstream: `pkg/controlplane/reconcilers/lease.go`).
//!
//! A live server renews a record with its address; the database deletes the record when it expires.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use pintle_kinds::bootstrap::endpoints;
use pintle_meta::Status;
use pintle_registry::{Registry, Resource, ResourceDefinition};
use pintle_value::Value;

use crate::bootstrap::ensure;
use crate::{Environment, until};

/// How often a server renews its record and reads those of the others.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long a stopping server may take to remove its record.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// A server among those of its database.
pub struct Peer {
    environment: Environment,
    /// The resource of the servers' records.
    records: Arc<Resource>,
    address: IpAddr,
    secure_port: u16,
}

impl Peer {
    /// Makes the peer of a server at an address; `definition` is that of the servers' records.
    pub fn new(
        environment: Environment,
        definition: ResourceDefinition,
        address: IpAddr,
        secure_port: u16,
    ) -> Self {
        let records = environment.registry.unserved(definition);
        Self { environment, records, address, secure_port }
    }

    /// Renews the record until shutdown, then removes it.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        until(shutdown, async {
            loop {
                if let Err(status) = self.renew().await {
                    tracing::warn!(%status, "cannot write the record of this server's address; will try again");
                }
                tokio::time::sleep(INTERVAL).await;
            }
        })
        .await;
        match tokio::time::timeout(FAREWELL_MAX, self.withdraw()).await {
            Ok(Ok(())) => {}
            Ok(Err(status)) => {
                tracing::warn!(%status, "cannot remove the record of this server's address")
            }
            Err(_) => tracing::warn!("removing the record of this server's address timed out"),
        }
    }

    /// Renews the server's record and updates the endpoints to the addresses of all live servers.
    pub async fn renew(&self) -> Result<(), Status> {
        let address = self.address.to_string();
        let namespaced_name = ("", address.as_str());
        self.registry()
            .put_record(&self.records, namespaced_name, |before| renewed(&address, before))
            .await?;
        self.reconcile(&self.alive()).await
    }

    async fn withdraw(&self) -> Result<(), Status> {
        let address = self.address.to_string();
        self.registry().remove_record(&self.records, ("", &address)).await?;
        let others: Vec<_> = self.alive().into_iter().filter(|one| *one != self.address).collect();
        self.reconcile(&others).await
    }

    /// Returns the addresses of live servers, sorted as text, as in upstream.
    fn alive(&self) -> Vec<IpAddr> {
        let mut names: Vec<String> =
            self.registry().objects(&self.records).map(|one| one.name().to_owned()).collect();
        names.sort();
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }

    async fn reconcile(&self, addresses: &[IpAddr]) -> Result<(), Status> {
        let objects = endpoints(addresses, self.secure_port).into();
        ensure(&self.environment, &objects).await.into_iter().next().map_or(Ok(()), Err)
    }

    fn registry(&self) -> &Registry {
        &self.environment.registry
    }
}

/// Returns a server's record in upstream's form. Its generation grows, because a write without a
/// change would not renew it.
fn renewed(address: &str, before: Option<Value>) -> Value {
    let generation = before.and_then(|before| before.at(&["metadata", "generation"])?.as_int());
    let metadata = Value::from([
        ("name", Value::from(address)),
        ("generation", generation.unwrap_or(0).saturating_add(1).into()),
    ]);
    let addresses = Value::from(vec![Value::from([("ip", address)])]);
    let subsets = vec![Value::from([("addresses", addresses)])];
    Value::from([("metadata", metadata), ("subsets", Value::from(subsets))])
}
