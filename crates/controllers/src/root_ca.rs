//! The root certificates behind the server's certificate, in a ConfigMap of every active namespace
//! (KCM-03).

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_meta::{Status, object};
use pintle_registry::Resource;
use pintle_registry::request::{WriteOptions, granted};
use pintle_value::{Str, Value};

use crate::each_namespace::{create, is_active};
use crate::reconcile::{Progress, Reconciler, Source, its_namespace, itself, work};
use crate::{Environment, body, target, until};

const USER: &str = "system:serviceaccount:kube-system:root-ca-cert-publisher";
const NAME: &str = "kube-root-ca.crt";
const MEMBER: &str = "ca.crt";
const ANNOTATION: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when \
     using internal endpoints such as the internal service IP or kubernetes.default.svc. No other \
     usage is guaranteed across distributions of Kubernetes clusters.";

/// Publishes the certificates, as PEM, until shutdown.
pub async fn run(environment: Environment, ca_pem: Str, shutdown: impl Future<Output = ()>) {
    let resources = environment.resource("", "v1", "namespaces");
    let resources = resources.zip(environment.resource("", "v1", "configmaps"));
    let Some((namespaces, configmaps)) = resources else { return };
    let publisher = Publisher { environment: &environment, ca_pem, namespaces, configmaps };
    until(shutdown, work(&environment, &publisher)).await;
}

struct Publisher<'e> {
    environment: &'e Environment,
    ca_pem: Str,
    namespaces: Arc<Resource>,
    configmaps: Arc<Resource>,
}

impl Reconciler for Publisher<'_> {
    fn purpose(&self) -> &'static str {
        "publish the root certificates in a namespace"
    }

    fn queue(&self) -> &'static str {
        "root_ca_cert_publisher"
    }

    fn sources(&self) -> Vec<Source> {
        vec![
            Source::new(&self.namespaces, itself),
            Source::new(&self.configmaps, its_namespace)
                .with_fields("metadata.name=kube-root-ca.crt"),
        ]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.publish(name))
    }
}

impl Publisher<'_> {
    async fn publish(&self, namespace: &str) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        if !is_active(registry, &self.namespaces, namespace)? {
            return Ok(Progress::Done);
        }
        let stored = registry.peek(&self.configmaps, namespace, NAME);
        let Some(stored) = stored else { return self.create(namespace).await };
        let mut map = stored.tree()?;
        let data = Value::from([(MEMBER, self.ca_pem.as_str())]);
        let described = map.str_at(&["metadata", "annotations", ANNOTATION]);
        if map.get("data") == Some(&data) && described.is_some_and(|text| !text.is_empty()) {
            return Ok(Progress::Done);
        }
        map.make_object().insert("data", data);
        object::metadata_mut(&mut map).entry_object("annotations").insert(ANNOTATION, DESCRIPTION);
        let one = target(&self.configmaps, namespace, NAME, "");
        let (body, options) = (body(&map), WriteOptions::default());
        let context = self.environment.context(USER);
        registry.update(&one, &body, &options, &context, &granted).await?;
        Ok(Progress::Done)
    }

    async fn create(&self, namespace: &str) -> Result<Progress, Status> {
        let metadata = Value::from([
            ("name", NAME.into()),
            ("namespace", namespace.into()),
            ("annotations", Value::from([(ANNOTATION, DESCRIPTION)])),
        ]);
        let map = Value::from([
            ("apiVersion", "v1".into()),
            ("kind", "ConfigMap".into()),
            ("metadata", metadata),
            ("data", Value::from([(MEMBER, self.ca_pem.as_str())])),
        ]);
        create(self.environment, USER, &self.configmaps, &map).await
    }
}
