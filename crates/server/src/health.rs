//! `/livez`, `/readyz` and the deprecated `/healthz`: named checks, one at a time or all together.

use std::time::Duration;

use crate::lifecycle::Lifecycle;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::respond::{Response, page, text};

/// The state that checks read.
pub(crate) struct Health<'a> {
    /// An error if the store accepts no writes.
    pub(crate) store: &'a (dyn Fn() -> Result<(), String> + Sync),
    /// An error if the store is too slow to be ready.
    pub(crate) store_ready: &'a (dyn Fn() -> Result<(), String> + Sync),
    /// The health of the KMS plugins; `None` where it is not checked.
    pub(crate) kms: Option<Result<(), String>>,
    /// Whether the configuration of encryption is reloaded.
    pub(crate) reloads_encryption: bool,
    pub(crate) lifecycle: &'a Lifecycle,
    /// In this time after the start, unfinished hooks do not fail `/livez` (HLT-07).
    pub(crate) livez_grace_period: Duration,
    /// Receives the endpoint, the name and the outcome of each check that runs for a request which
    /// names no single check.
    pub(crate) observe: &'a (dyn Fn(&str, &str, bool) + Sync),
}

/// The three endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Healthz,
    Livez,
    Readyz,
}

/// One named check.
struct Check {
    name: &'static str,
    about: Endpoints,
    run: fn(&Health<'_>, Endpoint) -> Result<(), String>,
}

/// The endpoints that a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoints {
    All,
    /// `/livez` and `/healthz`.
    Life,
    /// `/readyz`.
    Readiness,
    /// `/healthz` and `/readyz`, if KMS plugins are checked.
    Plugins,
    /// All, if the configuration of encryption is reloaded.
    EncryptionReload,
}

/// The optional parts of a server that have checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) kms_plugins: bool,
    pub(crate) encryption_reload: bool,
}

const fn check(name: &'static str, run: fn(&Health<'_>, Endpoint) -> Result<(), String>) -> Check {
    Check { name, about: Endpoints::All, run }
}

const fn life(name: &'static str, run: fn(&Health<'_>, Endpoint) -> Result<(), String>) -> Check {
    Check { name, about: Endpoints::Life, run }
}

const fn ready(name: &'static str, run: fn(&Health<'_>, Endpoint) -> Result<(), String>) -> Check {
    Check { name, about: Endpoints::Readiness, run }
}

/// The checks under upstream's names (HLT-06), in the order of the verbose page. Upstream runs
/// these hooks after the start; here all of them finish before the server is ready, so they pass
/// together.
const CHECKS: &[Check] = &[
    check("ping", |_, _| Ok(())),
    check("log", |_, _| Ok(())),
    // Upstream's loopback client uses this certificate; Pintle has no loopback client.
    life("loopback-serving-certificate", |_, _| Ok(())),
    check("etcd", |health, _| (health.store)()),
    ready("etcd-readiness", |health, _| (health.store_ready)()),
    Check {
        name: "kms-providers",
        about: Endpoints::Plugins,
        run: |health, _| health.kms.clone().unwrap_or(Ok(())),
    },
    ready("informer-sync", hook),
    Check {
        name: "poststarthook/start-encryption-provider-config-automatic-reload",
        about: Endpoints::EncryptionReload,
        run: hook,
    },
    check("poststarthook/start-apiserver-admission-initializer", hook),
    check("poststarthook/generic-apiserver-start-informers", hook),
    check("poststarthook/priority-and-fairness-config-consumer", hook),
    check("poststarthook/priority-and-fairness-filter", hook),
    check("poststarthook/storage-object-count-tracker-hook", hook),
    check("poststarthook/start-apiextensions-informers", hook),
    check("poststarthook/start-apiextensions-controllers", hook),
    check("poststarthook/crd-informer-synced", hook),
    check("poststarthook/start-system-namespaces-controller", hook),
    check("poststarthook/peer-endpoint-reconciler-controller", hook),
    check("poststarthook/start-cluster-authentication-info-controller", hook),
    check("poststarthook/start-kube-apiserver-identity-lease-controller", hook),
    check("poststarthook/start-kube-apiserver-identity-lease-garbage-collector", hook),
    check("poststarthook/storage-readiness", hook),
    check("poststarthook/start-legacy-token-tracking-controller", hook),
    check("poststarthook/start-service-ip-repair-controllers", hook),
    check("poststarthook/rbac/bootstrap-roles", hook),
    check("poststarthook/scheduling/bootstrap-system-priority-classes", hook),
    check("poststarthook/priority-and-fairness-config-producer", hook),
    check("poststarthook/bootstrap-controller", hook),
    check("poststarthook/start-kubernetes-service-cidr-controller", hook),
    check("poststarthook/start-kube-aggregator-informers", hook),
    check("poststarthook/apiservice-status-local-available-controller", hook),
    check("poststarthook/apiservice-status-remote-available-controller", hook),
    check("poststarthook/apiservice-registration-controller", hook),
    check("poststarthook/apiservice-discovery-controller", hook),
    check("poststarthook/kube-apiserver-autoregistration", hook),
    check("autoregister-completion", hook),
    check("poststarthook/apiservice-openapi-controller", hook),
    check("poststarthook/apiservice-openapiv3-controller", hook),
    ready("shutdown", |health, _| {
        if health.lifecycle.is_draining() {
            Err("process is shutting down".to_owned())
        } else {
            Ok(())
        }
    }),
];

/// Hooks start the tasks that run as long as the server. In upstream, a panic of one ends the
/// process.
fn hook(health: &Health<'_>, endpoint: Endpoint) -> Result<(), String> {
    health.lifecycle.panics().check()?;
    let young = health.lifecycle.age() < health.livez_grace_period;
    if health.lifecycle.is_started() || endpoint == Endpoint::Livez && young {
        Ok(())
    } else {
        Err("not finished".to_owned())
    }
}

impl Endpoint {
    const ALL: [(&'static str, Self); 3] =
        [("healthz", Self::Healthz), ("livez", Self::Livez), ("readyz", Self::Readyz)];

    const fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }

    /// The endpoint's checks of a server with these parts.
    fn checks(self, parts: Parts) -> impl Iterator<Item = &'static Check> {
        CHECKS.iter().filter(move |check| match check.about {
            Endpoints::All => true,
            Endpoints::Life => self != Self::Readyz,
            Endpoints::Readiness => self == Self::Readyz,
            Endpoints::Plugins => parts.kms_plugins && self != Self::Livez,
            Endpoints::EncryptionReload => parts.encryption_reload,
        })
    }
}

impl Health<'_> {
    const fn parts(&self) -> Parts {
        Parts { kms_plugins: self.kms.is_some(), encryption_reload: self.reloads_encryption }
    }
}

/// Every path of a health check of a server with these parts, for `/`.
pub(crate) fn paths(parts: Parts) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, endpoint) in Endpoint::ALL {
        paths.push(format!("/{name}"));
        paths.extend(endpoint.checks(parts).map(|check| format!("/{name}/{}", check.name)));
    }
    paths
}

/// True for a health check. No limit of requests in flight applies to health checks, as with
/// upstream's flow schema `probes`.
pub(crate) fn is_check(info: &RequestInfo) -> bool {
    info.resource.is_none() && endpoint(&info.path).is_some()
}

/// Splits `/livez/etcd` into the endpoint and the name of a check, if it names one.
pub(crate) fn endpoint(path: &str) -> Option<(Endpoint, Option<&str>)> {
    let path = path.strip_prefix('/')?;
    let (name, check) = path.split_once('/').map_or((path, None), |(name, c)| (name, Some(c)));
    let (_, endpoint) = Endpoint::ALL.iter().find(|(known, _)| *known == name)?;
    Some((*endpoint, check))
}

/// Go's body of a 404.
pub(crate) const NO_SUCH_PAGE: &str = "404 page not found\n";

/// Runs one check, or all if `check` is `None`.
pub(crate) fn answer(
    health: &Health<'_>,
    endpoint: Endpoint,
    check: Option<&str>,
    query: &Query,
) -> Response {
    let Some(name) = check else { return all(health, endpoint, query) };
    let Some(check) = endpoint.checks(health.parts()).find(|known| known.name == name) else {
        return text(404, NO_SUCH_PAGE);
    };
    match (check.run)(health, endpoint) {
        // Upstream sets `X-Content-Type-Options` on the failure only.
        Ok(()) => page(200, "ok"),
        Err(why) => text(500, format!("internal server error: {why}\n")),
    }
}

fn all(health: &Health<'_>, endpoint: Endpoint, query: &Query) -> Response {
    let mut unknown: Vec<&str> = query.all("exclude").collect();
    let excluded = unknown.clone();
    let (mut lines, mut failed) = (String::new(), Vec::new());
    for check in endpoint.checks(health.parts()) {
        let name = check.name;
        if excluded.contains(&name) {
            unknown.retain(|excluded| *excluded != name);
            lines.push_str(&format!("[+]{name} excluded: ok\n")); // HLT-04
            continue;
        }
        let result = (check.run)(health, endpoint);
        (health.observe)(endpoint.name(), name, result.is_ok());
        if let Err(why) = result {
            // The endpoint is public, so the reason goes to the log only.
            lines.push_str(&format!("[-]{name} failed: reason withheld\n"));
            failed.push(format!("{name}: {why}"));
        } else {
            lines.push_str(&format!("[+]{name} ok\n"));
        }
    }
    if !unknown.is_empty() {
        unknown.sort_unstable();
        unknown.dedup();
        let names: Vec<_> = unknown.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(",");
        // HLT-11
        lines.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {names}\n"
        ));
    }
    let name = endpoint.name();
    if !failed.is_empty() {
        tracing::debug!(checks = %failed.join("; "), "{name} check failed");
        return text(500, format!("{lines}{name} check failed\n"));
    }
    if query.has("verbose") {
        text(200, format!("{lines}{name} check passed\n"))
    } else {
        text(200, "ok")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Server {
        store: Result<(), String>,
        kms: Option<Result<(), String>>,
        reloads_encryption: bool,
        lifecycle: Lifecycle,
        grace: Duration,
    }

    impl Server {
        fn started() -> Self {
            let lifecycle = Lifecycle::new();
            lifecycle.start();
            let (kms, reloads_encryption) = (None, false);
            Self { store: Ok(()), kms, reloads_encryption, lifecycle, grace: Duration::ZERO }
        }

        fn get(&self, url: &str) -> Option<(u16, String)> {
            let (path, query) = url.split_once('?').unwrap_or((url, ""));
            let (endpoint, check) = endpoint(path)?;
            let store = || self.store.clone();
            let health = Health {
                store: &store,
                store_ready: &store,
                kms: self.kms.clone(),
                reloads_encryption: self.reloads_encryption,
                lifecycle: &self.lifecycle,
                livez_grace_period: self.grace,
                observe: &|_, _, _| {},
            };
            let response = answer(&health, endpoint, check, &Query::parse(query));
            let code = response.status().as_u16();
            let mut text = Vec::new();
            response.into_body().map_whole(|bytes| {
                text = bytes.to_vec();
                Vec::new()
            });
            Some((code, String::from_utf8(text).unwrap()))
        }
    }

    /// Upstream: `TestKMSv2Healthz`; plugins do not count for `/livez`.
    #[test]
    fn plugins_are_checked_by_healthz_and_readyz() {
        let mut server = Server::started();
        for (kms, code) in [(None, 404), (Some(Ok(())), 200), (Some(Err("ill".to_owned())), 500)] {
            server.kms = kms;
            for endpoint in ["healthz", "readyz"] {
                let (found, _) = server.get(&format!("/{endpoint}/kms-providers")).unwrap();
                assert_eq!(found, code);
                let (found, text) = server.get(&format!("/{endpoint}?verbose")).unwrap();
                assert_eq!(found, if code == 500 { 500 } else { 200 });
                assert_eq!(text.contains("kms-providers"), code != 404);
            }
            assert_eq!(server.get("/livez/kms-providers").unwrap().0, 404);
            assert_eq!(server.get("/livez").unwrap().0, 200);
        }
    }

    #[test]
    fn the_reload_of_encryption_is_a_hook() {
        const NAME: &str = "poststarthook/start-encryption-provider-config-automatic-reload";
        let mut server = Server::started();
        for (is_reloaded, code) in [(false, 404), (true, 200)] {
            server.reloads_encryption = is_reloaded;
            for endpoint in ["healthz", "livez", "readyz"] {
                assert_eq!(server.get(&format!("/{endpoint}/{NAME}")).unwrap().0, code);
                let (_, text) = server.get(&format!("/{endpoint}?verbose")).unwrap();
                assert_eq!(text.contains(&format!("[+]{NAME} ok\n")), is_reloaded);
            }
            let parts = Parts { kms_plugins: false, encryption_reload: is_reloaded };
            assert_eq!(paths(parts).contains(&format!("/readyz/{NAME}")), is_reloaded);
        }
    }

    #[test]
    fn a_healthy_server_says_ok() {
        let server = Server::started();
        for url in [
            "/livez",
            "/readyz",
            "/healthz",
            "/livez/etcd",
            "/readyz/poststarthook/rbac/bootstrap-roles",
        ] {
            assert_eq!(server.get(url), Some((200, "ok".to_owned())), "{url}"); // HLT-01, HLT-05
        }
        let not_found = Some((404, "404 page not found\n".to_owned()));
        for url in
            ["/livez/", "/livez/nope", "/livez/shutdown", "/readyz/loopback-serving-certificate"]
        {
            assert_eq!(server.get(url), not_found, "{url}");
        }
        assert_eq!(server.get("/health"), None);
    }

    #[test]
    fn details_are_shown_when_asked_for() {
        let (code, text) = Server::started().get("/livez?verbose&exclude=etcd&exclude=x").unwrap();
        assert_eq!(code, 200);
        // HLT-03, HLT-04, HLT-11
        let first =
            "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]etcd excluded: ok\n";
        assert!(text.starts_with(first), "{text}");
        assert!(text.ends_with(
            "warn: some health checks cannot be excluded: no matches for \"x\"\nlivez check passed\n"
        ));
    }

    #[test]
    fn failures_are_shown_without_their_reason() {
        let mut server = Server::started();
        server.store = Err("the disk is gone".to_owned());
        let (code, text) = server.get("/readyz").unwrap();
        assert_eq!(code, 500); // HLT-02
        assert!(text.contains("[-]etcd failed: reason withheld\n"), "{text}"); // HLT-10
        assert!(text.ends_with("readyz check failed\n") && !text.contains("disk"));
        let (code, text) = server.get("/readyz/etcd").unwrap();
        assert_eq!((code, text.as_str()), (500, "internal server error: the disk is gone\n"));
        assert_eq!(server.get("/readyz?exclude=etcd&exclude=etcd-readiness").unwrap().0, 200);
    }

    #[tokio::test]
    async fn a_server_whose_task_panicked_does_not_live() {
        let server = Server::started();
        let panics = || server.lifecycle.panics().clone();
        panics().watch(async {}).await;
        assert_eq!(server.get("/livez").unwrap().0, 200);
        panics().watch(async { panic!("this panic is a test's") }).await;
        for endpoint in ["livez", "readyz", "healthz"] {
            assert_eq!(server.get(&format!("/{endpoint}")).unwrap().0, 500);
        }
        assert_eq!(server.get("/livez/ping").unwrap().0, 200);
    }

    #[test]
    fn a_server_that_is_to_stop_lives_and_is_not_ready() {
        let server = Server::started();
        server.lifecycle.drain();
        assert_eq!(server.get("/livez").unwrap().0, 200);
        let (code, text) = server.get("/readyz").unwrap();
        assert_eq!(code, 500); // HLT-08
        assert!(text.contains("[-]shutdown failed: reason withheld"));
    }

    #[test]
    fn a_server_that_starts_may_live_before_it_is_ready() {
        let server = |grace| Server {
            kms: None,
            reloads_encryption: false,
            store: Ok(()),
            lifecycle: Lifecycle::new(),
            grace: Duration::from_secs(grace),
        };
        assert_eq!(server(60).get("/livez").unwrap().0, 200); // HLT-07
        assert_eq!(server(60).get("/readyz").unwrap().0, 500);
        assert_eq!(server(0).get("/livez").unwrap().0, 500);
    }
}
