//! Which controllers run, and what each is given.

use pintle_controllers::definitions::Definitions;
use pintle_controllers::{
    Controller, Environment, aggregation, bootstrap, expiry, garbage, namespaces, root_ca,
    service_accounts,
};
use pintle_kinds::bootstrap::BootstrapObject;
use tokio::task::JoinSet;

use crate::Config;
use crate::lifecycle::Lifecycle;

/// What controllers work with.
pub(super) struct Parts<'a> {
    pub(super) environment: Environment,
    pub(super) definitions: Definitions,
    /// The objects that the server makes by itself.
    pub(super) objects: &'a [BootstrapObject],
    /// What clients must trust, as PEM.
    pub(super) ca_pem: &'a str,
    pub(super) lifecycle: &'a Lifecycle,
}

impl Parts<'_> {
    /// Starts the controllers that are wanted; they work until the server stops.
    pub(super) fn start(self, config: &Config) -> JoinSet<()> {
        let Self { environment, definitions, objects, ca_pem, lifecycle } = self;
        let stopping = || {
            let mut stopping = lifecycle.stopping();
            async move { stopping.wait().await }
        };
        let mut running = JoinSet::new();
        running.spawn(bootstrap::run(environment.clone(), objects.to_vec(), stopping()));
        running.spawn(definitions.run(stopping()));
        running.spawn(expiry::run(environment.clone(), stopping()));
        let wanted = |controller| config.controllers.has(controller);
        if wanted(Controller::Namespace) {
            let delay = config.namespace_deletion_delay;
            running.spawn(namespaces::run(environment.clone(), delay, stopping()));
        }
        if wanted(Controller::ServiceAccount) {
            running.spawn(service_accounts::run(environment.clone(), stopping()));
        }
        if wanted(Controller::RootCa) {
            running.spawn(root_ca::run(environment.clone(), ca_pem.into(), stopping()));
        }
        if wanted(Controller::GarbageCollector) {
            running.spawn(garbage::run(environment.clone(), stopping()));
        }
        if wanted(Controller::ClusterRoleAggregation) {
            running.spawn(aggregation::run(environment.clone(), stopping()));
        }
        running
    }
}
