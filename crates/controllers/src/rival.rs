//! Warning about a kube-controller-manager next to this server's controllers: what both run is done
//! twice. Its lease shows that it runs, but not which of its controllers.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pintle_meta::Status;
use pintle_registry::Resource;
use pintle_value::{Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, Selection, identity, split, until};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-controller-manager";

/// Warns about each kube-controller-manager that starts while controllers run here, until shutdown.
pub async fn run(environment: Environment, own: Selection, shutdown: impl Future<Output = ()>) {
    let leases = environment.resource("coordination.k8s.io", "v1", "leases");
    let Some(leases) = leases.filter(|_| !own.is_empty()) else { return };
    let rival = Rival { environment: &environment, leases, own, warned_about: Mutex::default() };
    until(shutdown, work(&environment, &rival)).await;
}

struct Rival<'e> {
    environment: &'e Environment,
    leases: Arc<Resource>,
    own: Selection,
    /// The holder that was warned about last.
    warned_about: Mutex<Str>,
}

impl Reconciler for Rival<'_> {
    fn purpose(&self) -> &'static str {
        "check for a kube-controller-manager"
    }

    fn queue(&self) -> &'static str {
        "kube_controller_manager"
    }

    fn sources(&self) -> Vec<Source> {
        let selector = format!("metadata.namespace={NAMESPACE},metadata.name={NAME}");
        vec![Source::new(&self.leases, itself).with_fields(selector)]
    }

    fn reconcile<'a>(&'a self, item: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(async move {
            let (namespace, name) = split(item);
            let lease = self.environment.registry.peek(&self.leases, namespace, name);
            let lease = lease.map(|lease| lease.tree()).transpose()?;
            let now = (self.environment.clock)().unix_micros;
            if let Some(holder) = lease.as_ref().and_then(|lease| holder(lease, now)) {
                self.warn(holder);
            }
            Ok(Progress::Done)
        })
    }
}

impl Rival<'_> {
    fn warn(&self, holder: &str) {
        let mut warned_about = self.warned_about.lock();
        if warned_about.as_str() != holder {
            *warned_about = holder.into();
            tracing::warn!(
                %holder,
                "a kube-controller-manager runs besides controllers of this server; what both run is done twice. \
                 Start this server with --controllers=-* to leave all of them to it; these run here: {}",
                self.own.names().collect::<Vec<_>>().join(", ")
            );
        }
    }
}

/// Returns the holder of a valid lease.
fn holder(lease: &Value, now_unix_micros: i64) -> Option<&str> {
    let spec = lease.get("spec")?;
    let holder = spec.str_at(&["holderIdentity"]).filter(|holder| !holder.is_empty())?;
    (identity::end(lease) > now_unix_micros).then_some(holder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tree;

    fn check(lease: &str, expected: Option<&str>) {
        assert_eq!(holder(&tree(lease), 20_000_000), expected, "{lease}");
    }

    #[test]
    fn a_lease_is_held_until_it_ends() {
        let lease = r#"{"spec":{"holderIdentity":"kcm","leaseDurationSeconds":15,
            "renewTime":"1970-01-01T00:00:06.000000Z"}}"#;
        check(lease, Some("kcm"));
        check(&lease.replace(":06.", ":05."), None);
        check(&lease.replace(r#""kcm""#, r#""""#), None); // it was released
        check(&lease.replace("1970-01-01T", "at "), None);
        check(r#"{"metadata":{}}"#, None);
    }
}
