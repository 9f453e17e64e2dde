//! The ConfigMap with the date since which the use of legacy tokens is recorded (upstream: the
//! legacy token tracking controller). A kube-controller-manager deletes tokens that were not used
//! since then.

#[cfg(test)]
mod tests;
mod uses;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pintle_meta::{Reason, Status, time};
use pintle_registry::request::{WriteOptions, granted};
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

pub use uses::{Uses, run as note_uses};

use crate::reconcile::{Progress, Reconciler, Source, work};
use crate::{Environment, SERVER, body, target, until};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "since";
/// The shortest time between two creations of the ConfigMap, so that servers that disagree about it
/// do not create and delete it in turns.
const CREATION_PAUSE_MICROS: i64 = 30 * 60 * time::SECOND;

/// Maintains the ConfigMap until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let resource = |name| environment.resource("", "v1", name);
    let Some((namespaces, config_maps)) = resource("namespaces").zip(resource("configmaps")) else {
        return;
    };
    let (environment, made) = (&environment, Mutex::default());
    let tracking = Tracking { environment, namespaces, config_maps, made };
    until(shutdown, work(environment, &tracking)).await;
}

struct Tracking<'e> {
    environment: &'e Environment,
    namespaces: Arc<Resource>,
    config_maps: Arc<Resource>,
    /// When this server created the ConfigMap last, in microseconds since 1970.
    made: Mutex<Option<i64>>,
}

impl Reconciler for Tracking<'_> {
    fn purpose(&self) -> &'static str {
        "update the ConfigMap of legacy token tracking"
    }

    fn queue(&self) -> &'static str {
        "legacy_token_tracking_controller"
    }

    fn sources(&self) -> Vec<Source> {
        let named = |name| format!("metadata.name={name}");
        vec![
            Source::new(&self.namespaces, the_only_name).with_fields(named(NAMESPACE)),
            Source::new(&self.config_maps, the_only_name)
                .with_fields(format!("{},metadata.namespace={NAMESPACE}", named(NAME))),
        ]
    }

    fn reconcile<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.update())
    }
}

/// Both sources enqueue the only name.
fn the_only_name(_: &Object) -> Option<Str> {
    Some(Str::const_new(NAME))
}

impl Tracking<'_> {
    async fn update(&self) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        let (options, context) = (WriteOptions::default(), self.environment.context(SERVER));
        let now = (self.environment.clock)().unix_micros;
        let date = time::day(now / time::SECOND);
        let written = match registry.peek(&self.config_maps, NAMESPACE, NAME) {
            Some(stored) => {
                let mut tree = self.config_maps.tree(&stored)?;
                if tree.str_at(&["data", SINCE]).is_some_and(is_date) {
                    return Ok(Progress::Done);
                }
                tree.object_entry("data").insert(SINCE, date);
                let one = target(&self.config_maps, NAMESPACE, NAME, "");
                registry.update(&one, &body(&tree), &options, &context, &granted).await
            }
            None => {
                let next = self.made.lock().map(|made| made.saturating_add(CREATION_PAUSE_MICROS));
                if let Some(left) = next.and_then(|next| self.environment.until(next)) {
                    return Ok(Progress::After(left));
                }
                let all = target(&self.config_maps, NAMESPACE, "", "");
                let tree = Value::from([
                    ("apiVersion", Value::from("v1")),
                    ("kind", "ConfigMap".into()),
                    ("metadata", Value::from([("name", NAME), ("namespace", NAMESPACE)])),
                    ("data", Value::from([(SINCE, Str::from(date))])),
                ]);
                let made = registry.create(&all, &body(&tree), &options, &context).await;
                if made.is_ok() {
                    *self.made.lock() = Some(now);
                }
                made
            }
        };
        match written {
            // Another server was faster; its write enqueues the name again.
            Err(status) if !is_race(&status) => Err(status),
            Ok(_) | Err(_) => Ok(Progress::Done),
        }
    }
}

fn is_race(status: &Status) -> bool {
    let reasons = [Reason::AlreadyExists, Reason::Conflict];
    status.reason.as_ref().is_some_and(|reason| reasons.contains(reason))
}

/// Whether a text is a date as in 2006-01-02.
fn is_date(text: &str) -> bool {
    time::parse(&format!("{text}T00:00:00Z")).is_ok()
}
