//! Counts the authentications, impersonations and authorizations of requests, and writes these
//! metrics with those of tokens, webhooks and the node graph. Each thread counts in one of several
//! copies of the cells, so that threads do not contend.

use std::time::Duration;

use pintle_auth::{Decision, Error, User, token};
use pintle_measure::{Counter, Distribution, Shards};

use super::families as f;
use super::families::{
    ACCESS_BOUNDS, AUTHENTICATED_USERS, AUTHENTICATION_DURATION, AUTHENTICATIONS,
    AUTHORIZATION_DURATION, AUTHORIZATIONS, CERTIFICATE_EXPIRATION, EXPIRATION_BOUNDS,
    FILTER_BOUNDS, FILTER_DURATION,
};
use super::family::Page;
use super::requests::total;
use super::{counters, distributions, gauges};
use crate::authentication::{external, impersonation};
use crate::authorization::{GraphMeasures, Measures};

/// The measures of authentication and authorization.
pub(crate) struct Access(Shards<Cells>);

struct Cells {
    users: [Counter; USERS.len()],
    authentications: [Distribution; AUTHENTICATION_RESULTS.len()],
    authorizations: [Distribution; AUTHORIZATION_RESULTS.len()],
    filters: [Distribution; FILTERS.len()],
    certificates: Distribution,
}

/// The users with their own label (upstream: `compressUsername`), and the two labels of all other
/// users.
const USERS: [&str; 7] = [
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:serviceaccount:kube-system:default",
    "email_id",
    "other",
];
const EMAIL: usize = USERS.len() - 2;
const OTHER: usize = USERS.len() - 1;
const AUTHENTICATION_RESULTS: [&str; 3] = ["success", "failure", "error"];
const AUTHORIZATION_RESULTS: [&str; 3] = ["allowed", "denied", "no-opinion"];
/// Upstream's names of the filters before the handler.
const FILTERS: [&str; 3] = ["authentication", "constrainedimpersonation", "authorization"];

impl Access {
    /// Returns measures with all counts at zero.
    pub(super) fn new() -> Self {
        Self(Shards::new(|| Cells {
            users: Default::default(),
            authentications: std::array::from_fn(|_| Distribution::new(&ACCESS_BOUNDS)),
            authorizations: std::array::from_fn(|_| Distribution::new(&ACCESS_BOUNDS)),
            filters: std::array::from_fn(|_| Distribution::new(&FILTER_BOUNDS)),
            certificates: Distribution::new(&EXPIRATION_BOUNDS),
        }))
    }

    /// Counts an authentication.
    pub(crate) fn authenticated(&self, who: Result<&User, &Error>, took: Duration) {
        let cells = self.0.here();
        let result = match who {
            Ok(user) => {
                cells.users[class(&user.name)].add(1);
                0
            }
            Err(Error::Missing) => 1,
            Err(_) => 2,
        };
        cells.authentications[result].took(took);
        cells.filters[0].took(took);
    }

    /// Observes how long the impersonation step of a request took.
    pub(crate) fn impersonated(&self, took: Duration) {
        self.0.here().filters[1].took(took);
    }

    /// Counts an authorization.
    pub(crate) fn authorized(&self, decision: Decision, took: Duration) {
        let cells = self.0.here();
        let result = match decision {
            Decision::Allow => 0,
            Decision::Deny => 1,
            Decision::NoOpinion => 2,
        };
        cells.authorizations[result].took(took);
        cells.filters[2].took(took);
    }

    /// Observes the remaining validity of a client certificate.
    pub(crate) fn certificate(&self, remaining_seconds: i64) {
        self.0.here().certificates.observe(u64::try_from(remaining_seconds).unwrap_or(0));
    }

    pub(super) fn write(&self, page: &mut Page) {
        let mut users = page.family(&AUTHENTICATED_USERS);
        for (at, user) in USERS.iter().enumerate() {
            let count: u64 = self.0.all().map(|cells| cells.users[at].get()).sum();
            if count > 0 {
                users.value(&[user], count);
            }
        }
        for (family, durations, results, of) in [
            (
                &AUTHENTICATIONS,
                &AUTHENTICATION_DURATION,
                AUTHENTICATION_RESULTS,
                (|cells: &Cells, at: usize| &cells.authentications[at])
                    as fn(&Cells, usize) -> &Distribution,
            ),
            (&AUTHORIZATIONS, &AUTHORIZATION_DURATION, AUTHORIZATION_RESULTS, |cells, at| {
                &cells.authorizations[at]
            }),
        ] {
            let observed = std::array::from_fn::<_, 3, _>(|at| {
                total(&ACCESS_BOUNDS, self.0.all().map(|cells| of(cells, at)))
            });
            let seen = || results.iter().zip(&observed).filter(|(_, seen)| seen.count() > 0);
            let mut counts = page.family(family);
            seen().for_each(|(result, seen)| counts.value(&[result], seen.count()));
            let mut spread = page.family(durations);
            seen().for_each(|(result, seen)| spread.distribution(&[result], seen));
        }
        let mut filters = page.family(&FILTER_DURATION);
        for (at, filter) in FILTERS.iter().enumerate() {
            let cells = self.0.all().map(|cells| &cells.filters[at]);
            filters.distribution(&[filter], &total(&FILTER_BOUNDS, cells));
        }
        let certificates = self.0.all().map(|cells| &cells.certificates);
        page.family(&CERTIFICATE_EXPIRATION)
            .distribution(&[], &total(&EXPIRATION_BOUNDS, certificates));
    }
}

/// Writes the measures of impersonation.
pub(super) fn write_impersonation(measures: &impersonation::Measures, page: &mut Page) {
    for (count, durations, series) in [
        (&f::IMPERSONATIONS, &f::IMPERSONATION_DURATION, &measures.attempts),
        (
            &f::IMPERSONATION_AUTHORIZATIONS,
            &f::IMPERSONATION_AUTHORIZATION_DURATION,
            &measures.authorizations,
        ),
    ] {
        let mut counts = page.family(count);
        for ([decision, mode], took) in series.all() {
            counts.value(&[&decision, &mode], took.observed().count());
        }
        distributions(page, durations, series);
    }
}

/// Writes the measures of authorizers, webhooks and the configuration.
pub(super) fn write_authorization(measures: &Measures, page: &mut Page) {
    let mut samples = page.family(&f::DECISIONS);
    for ([name, mode], decisions) in measures.decisions.all() {
        for (decision, count) in [("allowed", &decisions.allowed), ("denied", &decisions.denied)] {
            if count.get() > 0 {
                samples.value(&[decision, &name, &mode], count.get());
            }
        }
    }
    let webhooks = &measures.webhooks;
    let mut asked = page.family(&f::AUTHORIZATION_WEBHOOK_EVALUATIONS);
    for ([name, result], took) in webhooks.durations.all() {
        asked.value(&[&name, &result], took.observed().count());
    }
    distributions(page, &f::AUTHORIZATION_WEBHOOK_DURATION, &webhooks.durations);
    counters(page, &f::AUTHORIZATION_WEBHOOK_FAIL_OPEN, &webhooks.failed_open);
    distributions(page, &f::AUTHORIZATION_CONDITIONS, &webhooks.conditions);
    counters(page, &f::AUTHORIZATION_CONDITION_ERRORS, &webhooks.condition_errors);
    counters(page, &f::AUTHORIZATION_CONDITION_EXCLUSIONS, &webhooks.exclusions);
    counters(page, &f::AUTHORIZATION_RELOADS, &measures.reloads.total);
    gauges(page, &f::AUTHORIZATION_RELOADED, &measures.reloads.last_unix_seconds);
    gauges(page, &f::AUTHORIZATION_CONFIG, &measures.reloads.config);
}

/// Writes the measures of external tokens.
pub(super) fn write_external(measures: &external::Measures, page: &mut Page) {
    counters(page, &f::AUTHENTICATION_RELOADS, &measures.reloads.total);
    gauges(page, &f::AUTHENTICATION_RELOADED, &measures.reloads.last_unix_seconds);
    gauges(page, &f::AUTHENTICATION_CONFIG, &measures.reloads.config);
    let providers = &measures.providers;
    distributions(page, &f::JWT_DURATION, &providers.latencies);
    gauges(page, &f::JWT_KEYS_FETCHED, &providers.fetched_unix_seconds);
    gauges(page, &f::JWT_KEYS, &providers.key_sets);
}

/// Writes the measures of the node graph.
pub(super) fn write_node_graph(measures: &GraphMeasures, page: &mut Page) {
    let mut family = page.family(&f::NODE_GRAPH);
    for (operation, took) in measures.all() {
        let took = took.observed();
        if took.count() > 0 {
            family.distribution(&[operation], &took);
        }
    }
}

/// Writes the measures of service account tokens. Each request verifies its token itself and waits
/// for no other verification, so the sample `blocked`, which would always be 0, is left out.
pub(super) fn write_tokens(tokens: &token::Measures, page: &mut Page) {
    let known = [("hit", tokens.hits.observed()), ("miss", tokens.misses.observed())];
    let known = || known.iter().filter(|(_, observed)| observed.count() > 0);
    let mut requests = page.family(&f::TOKEN_REQUESTS);
    known().for_each(|(status, observed)| requests.value(&[status], observed.count()));
    let mut durations = page.family(&f::TOKEN_DURATION);
    known().for_each(|(status, observed)| durations.distribution(&[status], observed));
    let mut fetches = page.family(&f::TOKEN_FETCHES);
    fetches.value(&["ok"], tokens.verified.get());
    fetches.value(&["error"], tokens.refused.get());
    page.family(&f::TOKENS_ACTIVE).value(&["in_flight"], tokens.verifying.get());
    for (family, count) in [
        (&f::LEGACY_TOKENS, &tokens.legacy),
        (&f::LEGACY_AUTOMATIC, &tokens.legacy_automatic),
        (&f::LEGACY_MANUAL, &tokens.legacy_manual),
        (&f::LEGACY_INVALIDATED, &tokens.legacy_invalidated),
        (&f::STALE_TOKENS, &tokens.stale),
        (&f::VALID_TOKENS, &tokens.valid),
    ] {
        page.single(family, count.get());
    }
}

/// The index of a user's label.
fn class(name: &str) -> usize {
    let named = USERS[..EMAIL].iter().position(|known| *known == name);
    named.unwrap_or(if name.contains('@') { EMAIL } else { OTHER })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_users_have_their_own_label() {
        let rows = [
            ("admin", "admin"),
            (
                "system:serviceaccount:kube-system:default",
                "system:serviceaccount:kube-system:default",
            ),
            ("jane@example.com", "email_id"),
            ("jane", "other"),
            ("", "other"),
        ];
        for (name, class_name) in rows {
            assert_eq!(USERS[class(name)], class_name, "{name}");
        }
    }
}
