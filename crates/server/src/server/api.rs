//! Makes the [`Api`] of the configuration and of the parts that were made before it.

use std::net::SocketAddr;
use std::sync::Arc;

use pintle_auth::User;
use pintle_auth::jwt::Anonymous;
use pintle_registry::Registry;

use super::access::reachable;
use super::{Backends, Issued};
use crate::api::{Api, Settings};
use crate::audit::Audit;
use crate::audit_id::AuditIds;
use crate::authentication::{Authentication, FrontProxy};
use crate::authorization::Authorization;
use crate::backends::Dialer;
use crate::compute::Compute;
use crate::discovery::Discovery;
use crate::fairness::Fairness;
use crate::feature_gates::Feature;
use crate::identity;
use crate::lifecycle::Lifecycle;
use crate::limits::Limits;
use crate::machine::{now, random};
use crate::metrics::{Metrics, Sources};
use crate::openapi::OpenApi;
use crate::respond::Runs;
use crate::snapshots::Snapshots;
use crate::tls::Tls;
use crate::traces::Traces;
use crate::{Config, runtime};

/// The parts of an API besides the registry and the authorizers.
type Parts<'a> = (&'a Tls, Issued, Backends, Option<Arc<Audit>>, Option<Traces>);

/// Makes the API.
pub(super) fn assemble(
    config: &Config,
    registry: Arc<Registry>,
    authorization: &Authorization,
    (tls, (tokens, issuer), backends, audit, traces): Parts<'_>,
    sources: Sources,
    address: SocketAddr,
) -> Arc<Api> {
    let of_file = tokens.external.as_ref().and_then(|external| external.anonymous().cloned());
    let anonymous =
        of_file.unwrap_or_else(|| Anonymous { enabled: config.anonymous_auth, paths: Vec::new() });
    let has = |feature| config.feature_gates.has(feature);
    let seats = config.max_requests_inflight + config.max_mutating_requests_inflight;
    let fairness = config.priority_and_fairness.then(|| Fairness::new(registry.clone(), seats));
    Arc::new(Api {
        registry,
        fairness: fairness.map(Arc::new),
        authentication: Authentication {
            verifier: Some(tls.clients.clone()),
            front_proxy: tls
                .front_proxies
                .clone()
                .map(|verifier| FrontProxy::new(verifier, config.request_header.clone())),
            anonymous: may_be_anonymous(&anonymous, authorization)
                .then(|| Arc::new(User::anonymous())),
            anonymous_paths: anonymous.paths,
            tokens,
        },
        tokens: issuer,
        kubelets: backends.kubelets,
        aggregation: backends.aggregation,
        authorizer: authorization.authorizer(),
        discovery: Discovery::default(),
        openapi: OpenApi::default(),
        runs: Arc::new(Runs::new()),
        encryption: sources.encryption.clone(),
        metrics: Metrics::new(now().unix_seconds(), sources),
        limits: Limits::new(
            config.max_requests_inflight,
            config.max_mutating_requests_inflight,
            config.connections.sessions_max,
        ),
        compute: Compute::new(runtime::compute_slots()),
        snapshots: Arc::new(Snapshots::new(config)),
        lifecycle: Lifecycle::new(),
        audit,
        audit_ids: AuditIds::new(seed()),
        traces,
        settings: Settings {
            request_timeout: config.request_timeout,
            min_request_timeout: config.min_request_timeout,
            slow_request_threshold: config.slow_request_threshold,
            livez_grace_period: config.livez_grace_period,
            compression: has(Feature::ApiResponseCompression),
            cbor: has(Feature::CborServingAndStorage),
            watch_list: has(Feature::WatchList),
            constrained_impersonation: has(Feature::ConstrainedImpersonation),
            unsafe_deletion: has(Feature::UnsafeMalformedObjectDeletion),
            proxied_addresses: config.proxied_addresses,
            cors: config.cors.clone(),
            console: config.console,
            statusz: has(Feature::ComponentStatusz),
            flagz: has(Feature::ComponentFlagz),
            flags: config.flags.clone(),
            version: config.effective_version,
            address: reachable(address).to_string(),
        },
    })
}

/// Whether anonymous requests are allowed. With the mode AlwaysAllow they are refused, as in
/// upstream: every client that reaches the server would be its administrator.
fn may_be_anonymous(anonymous: &Anonymous, authorization: &Authorization) -> bool {
    let all_may_all = authorization.is_open();
    if anonymous.enabled && all_may_all {
        tracing::warn!(
            "anonymous requests are refused, because --authorization-mode has AlwaysAllow"
        );
    }
    anonymous.enabled && !all_may_all
}

/// The traces, if they are exported.
pub(super) fn traces(config: &Config, dialer: Dialer) -> Option<Traces> {
    let tracing = config.tracing.as_ref()?;
    Some(Traces::new(tracing, dialer, identity::own_name(), seed()))
}

/// A random number, from which identifiers are made.
fn seed() -> u64 {
    let mut seed = [0; 8];
    random(&mut seed);
    u64::from_le_bytes(seed)
}
