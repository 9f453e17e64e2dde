//! Which controllers run, and what each is given.

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
    signing_requests, storage_protection, token_secrets,
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

/// What stays while it is used, and who sees to it.
const PROTECTED: [(Controller, Protected); 4] = [
    (Controller::ClaimProtection, storage_protection::CLAIMS),
    (Controller::VolumeProtection, storage_protection::VOLUMES),
    (Controller::AttributesClassProtection, storage_protection::ATTRIBUTES_CLASSES),
    (Controller::PodGroupProtection, storage_protection::POD_GROUPS),
];

/// What controllers work with.
pub(super) struct Parts<'a> {
    pub(super) environment: Environment,
    /// The objects that the server makes by itself.
    pub(super) objects: watch::Receiver<Arc<[BootstrapObject]>>,
    /// Where members of the cluster reach the server.
    pub(super) advertised: SocketAddr,
    /// What clients must trust, and what makes certificates.
    pub(super) pki: &'a Pki,
    /// What makes tokens, who may what, and when the server stops.
    pub(super) api: &'a Api,
}

impl Parts<'_> {
    /// Starts the controllers that are wanted; they work until the server stops. Of several servers on one
    /// etcd, each looks after what it serves itself, and one runs the others.
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
            .map(|_| super::identity::keys(&self.pki.listener.clients.pem, keys));
        let identity = super::identity::identity(self.advertised, shared_keys);
        let (hostname, holder) = (identity.hostname.clone(), identity.holder.clone());
        let leadership = self.candidacy(config, holder, background);
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
        let mut lead = Lead { config, leadership, lifecycle: &self.api.lifecycle, background };
        self.start_led(config, &mut lead);
    }

    /// Lets the server compete for the lead, where there may be others; and says where it is.
    fn candidacy(&self, config: &Config, holder: Str, background: &mut Background) -> Leadership {
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

    /// Starts what one of several servers runs.
    fn start_led(self, config: &Config, lead: &mut Lead<'_>) {
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

/// Starts controllers that run while the server leads.
struct Lead<'a> {
    config: &'a Config,
    leadership: Leadership,
    lifecycle: &'a Lifecycle,
    background: &'a mut Background,
}

impl Lead<'_> {
    /// Runs a controller while the server leads, if it is wanted.
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
