//! Who asks, and whether they may.

use pintle_auth::token::TOKEN_BOUNDS;
use pintle_measure::nanoseconds;

use super::Stability::Alpha;
use super::{Family, counter, doubling, families, gauge, seconds, whole};

const MILLISECOND: u64 = 1_000_000;

pub(crate) static ACCESS_BOUNDS: [u64; 15] = doubling(MILLISECOND);
pub(crate) static FILTER_BOUNDS: [u64; 13] =
    nanoseconds([0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0]);
pub(crate) static NODE_GRAPH_BOUNDS: [u64; 12] = doubling(MILLISECOND / 10);
/// In seconds: from half an hour to a year.
pub(crate) static EXPIRATION_BOUNDS: [u64; 14] = [
    0, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 345_600, 604_800, 2_592_000, 7_776_000,
    15_552_000, 31_104_000,
];

families! {
    AUTHENTICATED_USERS = counter("authenticated_user_requests", Alpha, &["username"],
        "Requests of users who were authenticated.");
    AUTHENTICATIONS = counter("authentication_attempts", Alpha, &["result"],
        "Attempts to find out who asks.");
    AUTHENTICATION_DURATION = seconds("authentication_duration_seconds", Alpha, &["result"], &ACCESS_BOUNDS,
        "How long it took to find out who asks.");
    AUTHORIZATIONS = counter("authorization_attempts_total", Alpha, &["result"],
        "Requests that were ruled on.");
    AUTHORIZATION_DURATION = seconds("authorization_duration_seconds", Alpha, &["result"], &ACCESS_BOUNDS,
        "How long it took to rule on a request.");
    DECISIONS = counter("apiserver_authorization_decisions_total", Alpha, &["decision", "name", "type"],
        "Decisions of authorizers that others were not asked after.");
    NODE_GRAPH = seconds("node_authorizer_graph_actions_duration_seconds", Alpha, &["operation"], &NODE_GRAPH_BOUNDS,
        "How long it took to take an object into the graph of nodes, or out of it.");
    TOKEN_REQUESTS = counter("authentication_token_cache_request_total", Alpha, &["status"],
        "Tokens of service accounts that came, by whether they were verified before.");
    TOKEN_DURATION = seconds("authentication_token_cache_request_duration_seconds", Alpha, &["status"], &TOKEN_BOUNDS,
        "How long it took to know a token of a service account.");
    TOKEN_FETCHES = counter("authentication_token_cache_fetch_total", Alpha, &["status"],
        "Tokens of service accounts that were verified.");
    TOKENS_ACTIVE = gauge("authentication_token_cache_active_fetch_count", Alpha, &["status"],
        "Tokens of service accounts that are being verified.");
    LEGACY_TOKENS = counter("serviceaccount_legacy_tokens_total", Alpha, &[],
        "Uses of tokens in secrets.");
    LEGACY_AUTOMATIC = counter("serviceaccount_legacy_auto_token_uses_total", Alpha, &[],
        "Uses of tokens in secrets that their service accounts name.");
    LEGACY_MANUAL = counter("serviceaccount_legacy_manual_token_uses_total", Alpha, &[],
        "Uses of tokens in secrets that somebody made.");
    LEGACY_INVALIDATED = counter("serviceaccount_invalid_legacy_auto_token_uses_total", Alpha, &[],
        "Uses of tokens in secrets that are marked invalid.");
    STALE_TOKENS = counter("serviceaccount_stale_tokens_total", Alpha, &[],
        "Uses of tokens whose client should have got a new one.");
    VALID_TOKENS = counter("serviceaccount_valid_tokens_total", Alpha, &[],
        "Uses of tokens whose client gets a new one in time, as far as it was given more time.");
    FILTER_DURATION = seconds("apiserver_request_filter_duration_seconds", Alpha, &["filter"], &FILTER_BOUNDS,
        "How long a step before the handler took.");
    CERTIFICATE_EXPIRATION = whole("apiserver_client_certificate_expiration_seconds", Alpha, &[], &EXPIRATION_BOUNDS,
        "How long the client certificates of requests are still valid.");
}
