//! The service account named `default` in every active namespace (KCM-03).

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_meta::Status;
use pintle_registry::Resource;
use pintle_value::Value;

use crate::each_namespace::{create, is_active};
use crate::reconcile::{Progress, Reconciler, Source, its_namespace, itself, work};
use crate::{Environment, until};

const USER: &str = "system:serviceaccount:kube-system:service-account-controller";
const NAME: &str = "default";

/// Creates the accounts until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let resources = environment.resource("", "v1", "namespaces");
    let resources = resources.zip(environment.resource("", "v1", "serviceaccounts"));
    let Some((namespaces, accounts)) = resources else { return };
    let accounts = ServiceAccounts { environment: &environment, namespaces, accounts };
    until(shutdown, work(&environment, &accounts)).await;
}

struct ServiceAccounts<'e> {
    environment: &'e Environment,
    namespaces: Arc<Resource>,
    accounts: Arc<Resource>,
}

impl Reconciler for ServiceAccounts<'_> {
    fn purpose(&self) -> &'static str {
        "create the default service account of a namespace"
    }

    fn queue(&self) -> &'static str {
        "serviceaccount"
    }

    fn sources(&self) -> Vec<Source> {
        vec![
            Source::new(&self.namespaces, itself),
            Source::new(&self.accounts, its_namespace).with_fields("metadata.name=default"),
        ]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.ensure(name))
    }
}

impl ServiceAccounts<'_> {
    async fn ensure(&self, namespace: &str) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        if !is_active(registry, &self.namespaces, namespace)?
            || registry.peek(&self.accounts, namespace, NAME).is_some()
        {
            return Ok(Progress::Done);
        }
        let metadata = Value::from([("name", NAME), ("namespace", namespace)]);
        let account = Value::from([
            ("apiVersion", "v1".into()),
            ("kind", "ServiceAccount".into()),
            ("metadata", metadata),
        ]);
        create(self.environment, USER, &self.accounts, &account).await
    }
}
