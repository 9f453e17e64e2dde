//! Starts the controllers with the parts of the server that each one needs.

use std::net::SocketAddr;
use std::sync::Arc;

use pintle_controllers::definitions::Definitions;
use pintle_controllers::leader::{Candidate, Ended, Leadership};
use pintle_controllers::peers::Peer;
use pintle_controllers::storage_protection::Protected;
use pintle_controllers::{
    Controller, Environment, aggregation, availability, bootstrap, expiry, extensions,
    finished_jobs, flow_schemas, garbage, identity, legacy_tokens, namespaces, policy_types,
    quotas, rival, root_ca, service_accounts, service_addresses, service_ports, service_ranges,
    signing_requests, storage_migration, storage_protection, token_secrets,
};
use pintle_effects::PortRepair;
use pintle_kinds::bootstrap::BootstrapObject;
use pintle_value::Str;
use tokio::sync::watch;

use super::background::Background;
use crate::Config;
use crate::api::Api;
use crate::lifecycle::Lifecycle;
use crate::pki::Pki;

/// The kinds that are protected while in use, with their controllers.
const PROTECTED: [(Controller, Protected); 4] = [
    (Controller::ClaimProtection, storage_protection::CLAIMS),
    (Controller::VolumeProtection, storage_protection::VOLUMES),
    (Controller::AttributesClassProtection, storage_protection::ATTRIBUTES_CLASSES),
    (Controller::PodGroupProtection, storage_protection::POD_GROUPS),
];

/// The dependencies of controllers.
pub(super) struct Parts<'a> {
    pub(super) environment: Environment,
    /// The bootstrap objects.
    pub(super) objects: watch::Receiver<Arc<[BootstrapObject]>>,
    /// The address at which the cluster's members reach the server.
    pub(super) advertised: SocketAddr,
    /// The CA certificate, and the signer of certificates.
    pub(super) pki: &'a Pki,
    /// The token issuer, the authorizer, and the lifecycle.
    pub(super) api: &'a Api,
}

impl Parts<'_> {
    /// Starts the enabled controllers, which run until the server stops. With several servers on
    /// one etcd, each server runs the controllers of its own endpoints and APIs, and the leader
    /// runs the others.
    pub(super) fn start(
        self,
        definitions: Definitions,
        port_repair: PortRepair,
        config: &Config,
        background: &mut Background,
    ) {
        let environment = || self.environment.clone();
        let stopping = || {
            let mut stopping = self.api.lifecycle.stopping();
            async move { stopping.wait().await }
        };
        let keys = self.api.authentication.tokens.accounts.keys();
        let shared_keys = config
            .etcd
            .as_ref()
            .map(|_| crate::identity::keys(&self.pki.listener.clients.pem, keys));
        let identity = crate::identity::identity(self.advertised, shared_keys);
        let (hostname, holder) = (identity.hostname.clone(), identity.holder.clone());
        let leadership = self.join_election(config, holder, background);
        background.spawn(bootstrap::run(environment(), self.objects.clone(), stopping()));
        background.spawn(definitions.run(stopping()));
        if config.etcd.is_none() {
            background.spawn(expiry::run(environment(), config.event_ttl, stopping()));
        }
        background.spawn(service_addresses::run(environment(), hostname.clone(), stopping()));
        background.spawn(service_ports::run(environment(), hostname, port_repair, stopping()));
        background.spawn(identity::run(environment(), identity, stopping()));
        background.spawn(legacy_tokens::run(environment(), stopping()));
        background.spawn(legacy_tokens::note_uses(
            environment(),
            self.api.authentication.tokens.uses.clone(),
            stopping(),
        ));
        background.spawn(flow_schemas::run(environment(), stopping()));
        let aggregation = || self.api.aggregation.clone();
        background.spawn(availability::run(environment(), aggregation(), stopping()));
        background.spawn(extensions::run(environment(), aggregation(), stopping()));
        let rival = rival::run(environment(), config.controllers.clone(), stopping());
        background.spawn(rival);
        let mut lead =
            LeaderOnly { config, leadership, lifecycle: &self.api.lifecycle, background };
        self.start_leader_only(config, &mut lead);
    }

    /// If there may be other servers, which share an etcd, publishes this server's address and
    /// joins the leader election.
    fn join_election(
        &self,
        config: &Config,
        holder: Str,
        background: &mut Background,
    ) -> Leadership {
        if config.etcd.is_none() {
            return Leadership::alone();
        }
        let stopping = || {
            let mut stopping = self.api.lifecycle.stopping();
            async move { stopping.wait().await }
        };
        if let Some(definition) = pintle_kinds::internal("masterleases") {
            let (environment, advertised) = (self.environment.clone(), self.advertised);
            let peer = Peer::new(environment, definition, advertised.ip(), advertised.port());
            background.spawn_closing(peer.run(stopping()));
        }
        if config.controllers.is_empty() {
            return Leadership::none();
        }
        match Candidate::new(self.environment.clone(), holder) {
            Some(candidate) => {
                let leadership = candidate.leadership();
                background.spawn_closing(candidate.run(stopping()));
                leadership
            }
            None => Leadership::alone(),
        }
    }

    /// Starts the controllers that only the leader runs.
    fn start_leader_only(self, config: &Config, lead: &mut LeaderOnly<'_>) {
        let environment = || self.environment.clone();
        let delay = config.namespace_deletion_delay;
        let env = environment();
        lead.start(Controller::Namespace, move |end| namespaces::run(env.clone(), delay, end));
        let env = environment();
        lead.start(Controller::ServiceAccount, move |end| service_accounts::run(env.clone(), end));
        let (env, issuer, ca) =
            (environment(), self.api.tokens.issuer.clone(), Str::from(&*self.pki.ca_pem));
        lead.start(Controller::ServiceAccountToken, move |end| {
            token_secrets::run(env.clone(), issuer.clone(), ca.clone(), end)
        });
        let (env, ca) = (environment(), Str::from(&*self.pki.ca_pem));
        lead.start(Controller::RootCa, move |end| root_ca::run(env.clone(), ca.clone(), end));
        let (env, authorizer) = (environment(), self.api.authorizer.clone());
        lead.start(Controller::SigningRequestApproving, move |end| {
            signing_requests::approve(env.clone(), authorizer.clone(), end)
        });
        let (env, signer) = (environment(), self.pki.signer.clone());
        lead.start(Controller::SigningRequestSigning, move |end| {
            signing_requests::sign(env.clone(), signer.clone(), end)
        });
        let env = environment();
        lead.start(Controller::SigningRequestCleaner, move |end| {
            signing_requests::clean(env.clone(), end)
        });
        let env = environment();
        lead.start(Controller::TtlAfterFinished, move |end| finished_jobs::run(env.clone(), end));
        let env = environment();
        lead.start(Controller::StorageMigration, move |end| {
            storage_migration::run(env.clone(), end)
        });
        for (controller, of) in PROTECTED {
            let env = environment();
            lead.start(controller, move |end| storage_protection::run(env.clone(), of, end));
        }
        let env = environment();
        lead.start(Controller::ServiceCidr, move |end| service_ranges::run(env.clone(), end));
        let env = environment();
        lead.start(Controller::ResourceQuota, move |end| quotas::run(env.clone(), end));
        let env = environment();
        lead.start(Controller::PolicyStatus, move |end| policy_types::run(env.clone(), end));
        let env = environment();
        lead.start(Controller::GarbageCollector, move |end| garbage::run(env.clone(), end));
        let env = environment();
        lead.start(Controller::ClusterRoleAggregation, move |end| {
            aggregation::run(env.clone(), end)
        });
    }
}

/// Starts controllers that run while this server is the leader.
struct LeaderOnly<'a> {
    config: &'a Config,
    leadership: Leadership,
    lifecycle: &'a Lifecycle,
    background: &'a mut Background,
}

impl LeaderOnly<'_> {
    /// Runs a controller while this server is the leader, if it is enabled.
    fn start<W, F>(&mut self, controller: Controller, work: W)
    where
        W: FnMut(Ended) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        if self.config.controllers.has(controller) {
            let mut stopping = self.lifecycle.stopping();
            let stopping = async move { stopping.wait().await };
            self.background.spawn(self.leadership.clone().run(stopping, work));
        }
    }
}
