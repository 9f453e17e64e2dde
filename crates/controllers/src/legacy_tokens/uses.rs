//! The label of a secret with the day on which its token was used last (upstream:
//! `pkg/serviceaccount/legacy.go`). A kube-controller-manager reads it.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use pintle_auth::token::LEGACY_LAST_USED;
use pintle_meta::{Status, object, time};
use pintle_registry::Resource;
use pintle_registry::request::{WriteOptions, granted};
use tokio::sync::Notify;

use crate::{Environment, SERVER, body, target, until};

/// The most uses that wait to be recorded; further ones are recorded at their next use.
const WAITING_MAX: usize = 10_000;

/// Secrets whose tokens were used, by namespace and name, and that are not labelled yet.
#[derive(Debug, Default)]
pub struct Uses {
    waiting: Mutex<BTreeSet<(String, String)>>,
    changed: Notify,
}

impl Uses {
    /// Records a use; once for each waiting secret.
    pub fn note(&self, namespace: &str, secret: &str) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX && waiting.insert((namespace.into(), secret.into())) {
            self.changed.notify_one();
        }
    }

    fn take(&self) -> BTreeSet<(String, String)> {
        std::mem::take(&mut self.waiting.lock())
    }
}

/// Labels the secrets until shutdown.
pub async fn run(environment: Environment, uses: Arc<Uses>, shutdown: impl Future<Output = ()>) {
    let Some(secrets) = environment.resource("", "v1", "secrets") else { return };
    until(shutdown, label_for_ever(&environment, &secrets, &uses)).await;
}

async fn label_for_ever(environment: &Environment, secrets: &Arc<Resource>, uses: &Uses) {
    loop {
        for (namespace, name) in uses.take() {
            if let Err(status) = label(environment, secrets, &namespace, &name).await {
                // The next use records it again.
                tracing::warn!(%namespace, secret = %name, %status, "cannot record the use of a token in its secret");
            }
        }
        uses.changed.notified().await;
    }
}

async fn label(
    environment: &Environment,
    secrets: &Arc<Resource>,
    namespace: &str,
    name: &str,
) -> Result<(), Status> {
    let Some(stored) = environment.registry.peek(secrets, namespace, name) else { return Ok(()) };
    let mut secret = secrets.tree(&stored)?;
    let today = time::day((environment.clock)().unix_seconds());
    let labels = object::metadata_mut(&mut secret).entry_object("labels");
    labels.insert(LEGACY_LAST_USED, today);
    let one = target(secrets, namespace, name, "");
    let (options, context) = (WriteOptions::default(), environment.context(SERVER));
    environment.registry.update(&one, &body(&secret), &options, &context, &granted).await.map(drop)
}
