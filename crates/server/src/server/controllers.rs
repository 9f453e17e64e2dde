//! Which controllers run, and what each is given.

use std::net::SocketAddr;
use std::sync::Arc;

use pintle_auth::Authorizer;
use pintle_auth::token::Issuer;
use pintle_controllers::definitions::Definitions;
use pintle_controllers::storage_protection::Protected;
use pintle_controllers::{
    Controller, Environment, aggregation, availability, bootstrap, expiry, finished_jobs,
    flow_schemas, garbage, identity, legacy_tokens, namespaces, policy_types, quotas, root_ca,
    service_accounts, service_addresses, service_ranges, signing_requests, storage_protection,
    token_secrets,
};
use pintle_kinds::bootstrap::BootstrapObject;

use super::background::Background;
use crate::Config;
use crate::lifecycle::Lifecycle;
use crate::pki::Signer;

/// What stays while it is used, and who sees to it.
const PROTECTED: [(Controller, Protected); 3] = [
    (Controller::ClaimProtection, storage_protection::CLAIMS),
    (Controller::VolumeProtection, storage_protection::VOLUMES),
    (Controller::AttributesClassProtection, storage_protection::ATTRIBUTES_CLASSES),
];

/// What controllers work with.
pub(super) struct Parts<'a> {
    pub(super) environment: Environment,
    pub(super) definitions: Definitions,
    /// The objects that the server makes by itself.
    pub(super) objects: &'a [BootstrapObject],
    /// Where members of the cluster reach the server.
    pub(super) advertised: SocketAddr,
    /// What clients must trust, as PEM.
    pub(super) ca_pem: &'a str,
    /// Makes certificates.
    pub(super) signer: Arc<Signer>,
    /// Makes tokens.
    pub(super) issuer: Arc<Issuer>,
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) lifecycle: &'a Lifecycle,
}

impl Parts<'_> {
    /// Starts the controllers that are wanted; they work until the server stops.
    pub(super) fn start(self, config: &Config, background: &mut Background) {
        let environment = || self.environment.clone();
        let stopping = || {
            let mut stopping = self.lifecycle.stopping();
            async move { stopping.wait().await }
        };
        background.spawn(bootstrap::run(environment(), self.objects.to_vec(), stopping()));
        background.spawn(self.definitions.run(stopping()));
        background.spawn(expiry::run(environment(), config.event_ttl, stopping()));
        let identity = super::identity::identity(self.advertised);
        let hostname = identity.hostname.clone();
        background.spawn(service_addresses::run(environment(), hostname, stopping()));
        background.spawn(identity::run(environment(), identity, stopping()));
        background.spawn(legacy_tokens::run(environment(), stopping()));
        background.spawn(flow_schemas::run(environment(), stopping()));
        background.spawn(availability::run(environment(), stopping()));
        let wanted = |controller| config.controllers.has(controller);
        if wanted(Controller::Namespace) {
            let delay = config.namespace_deletion_delay;
            background.spawn(namespaces::run(environment(), delay, stopping()));
        }
        if wanted(Controller::ServiceAccount) {
            background.spawn(service_accounts::run(environment(), stopping()));
        }
        if wanted(Controller::ServiceAccountToken) {
            let ca_pem = self.ca_pem.into();
            background.spawn(token_secrets::run(environment(), self.issuer, ca_pem, stopping()));
        }
        if wanted(Controller::RootCa) {
            background.spawn(root_ca::run(environment(), self.ca_pem.into(), stopping()));
        }
        if wanted(Controller::SigningRequestApproving) {
            let authorizer = self.authorizer;
            background.spawn(signing_requests::approve(environment(), authorizer, stopping()));
        }
        if wanted(Controller::SigningRequestSigning) {
            background.spawn(signing_requests::sign(environment(), self.signer, stopping()));
        }
        if wanted(Controller::SigningRequestCleaner) {
            background.spawn(signing_requests::clean(environment(), stopping()));
        }
        if wanted(Controller::TtlAfterFinished) {
            background.spawn(finished_jobs::run(environment(), stopping()));
        }
        for (controller, of) in PROTECTED {
            if wanted(controller) {
                background.spawn(storage_protection::run(environment(), of, stopping()));
            }
        }
        if wanted(Controller::ServiceCidr) {
            background.spawn(service_ranges::run(environment(), stopping()));
        }
        if wanted(Controller::ResourceQuota) {
            background.spawn(quotas::run(environment(), stopping()));
        }
        if wanted(Controller::PolicyStatus) {
            background.spawn(policy_types::run(environment(), stopping()));
        }
        if wanted(Controller::GarbageCollector) {
            background.spawn(garbage::run(environment(), stopping()));
        }
        if wanted(Controller::ClusterRoleAggregation) {
            background.spawn(aggregation::run(environment(), stopping()));
        }
    }
}
