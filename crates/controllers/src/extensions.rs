//! What extension API servers serve is asked of them: whenever their API service changes, and each minute, for
//! nothing tells of other changes (upstream: the aggregator's discovery manager).

mod followers;
mod servers;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_meta::Status;
use pintle_registry::Resource;
use pintle_value::Value;

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, until};
pub(crate) use followers::{Followers, News};
pub(crate) use servers::NoExtensionServers;
pub use servers::{ExtensionRequest, ExtensionResource, ExtensionServers, Served};

/// How long what was told is believed; what could not be asked is asked again after this time at the latest.
const REFRESH: Duration = Duration::from_secs(60);

/// Asks extension API servers what they serve, and remembers it.
pub trait Discoverer: Send + Sync {
    /// Asks the server of an API service; one that is gone is forgotten. Gives whether there is a server to
    /// ask again, or why it did not answer. It takes no longer than a few seconds.
    fn discover<'a>(
        &'a self,
        name: &'a str,
        api_service: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool, String>>;
}

/// Keeps what is known of extension API servers true until told to stop.
pub async fn run(
    environment: Environment,
    discoverer: Arc<dyn Discoverer>,
    shutdown: impl Future<Output = ()>,
) {
    let api_services = environment.resource("apiregistration.k8s.io", "v1", "apiservices");
    let Some(api_services) = api_services else { return };
    let extensions =
        Extensions { environment: &environment, discoverer: &*discoverer, api_services };
    until(shutdown, work(&environment, &extensions)).await;
}

/// Settles one API service.
struct Extensions<'e> {
    environment: &'e Environment,
    discoverer: &'e dyn Discoverer,
    api_services: Arc<Resource>,
}

impl Reconciler for Extensions<'_> {
    fn purpose(&self) -> &'static str {
        "find out what an extension API server serves"
    }

    fn queue(&self) -> &'static str {
        "discovery-manager"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.api_services, itself)]
    }

    fn delay_max(&self) -> Duration {
        REFRESH
    }

    fn settle<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(async move {
            let registry = &self.environment.registry;
            let stored = registry.peek(&self.api_services, "", name);
            let tree = stored.map(|stored| self.api_services.tree(&stored)).transpose()?;
            match self.discoverer.discover(name, tree.as_ref()).await {
                Ok(true) => Ok(Progress::After(REFRESH)),
                Ok(false) => Ok(Progress::Done),
                Err(why) => {
                    tracing::debug!(
                        name,
                        why,
                        "an extension API server does not say what it serves"
                    );
                    Ok(Progress::Waiting)
                }
            }
        })
    }
}
