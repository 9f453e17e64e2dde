//! Families of authentication and authorization.

use pintle_auth::token::TOKEN_BOUNDS;
use pintle_measure::nanoseconds;

use super::Stability::{Alpha, Beta};
use super::{Family, counter, doubling, families, gauge, seconds, whole};
use crate::authentication::external::JWT_BOUNDS;
use crate::authentication::impersonation::IMPERSONATION_BOUNDS;
use crate::authorization::{CONDITION_BOUNDS, NODE_GRAPH_BOUNDS, WEBHOOK_BOUNDS};

const MILLISECOND: u64 = 1_000_000;

pub(crate) static ACCESS_BOUNDS: [u64; 15] = doubling(MILLISECOND);
pub(crate) static FILTER_BOUNDS: [u64; 13] =
    nanoseconds([0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0]);
/// In seconds: 0, and from half an hour to 360 days.
pub(crate) static EXPIRATION_BOUNDS: [u64; 14] = [
    0, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 345_600, 604_800, 2_592_000, 7_776_000,
    15_552_000, 31_104_000,
];

families! {
    AUTHENTICATED_USERS = counter("authenticated_user_requests", Alpha, &["username"],
        "Requests of authenticated users.");
    AUTHENTICATIONS = counter("authentication_attempts", Alpha, &["result"],
        "Authentication attempts, by result.");
    AUTHENTICATION_DURATION = seconds("authentication_duration_seconds", Alpha, &["result"], &ACCESS_BOUNDS,
        "How long authentication took.");
    AUTHENTICATION_RELOADS = counter("apiserver_authentication_config_controller_automatic_reloads_total", Beta, &["apiserver_id_hash", "status"],
        "Reloads of the authentication configuration.");
    AUTHENTICATION_RELOADED = gauge("apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds", Beta, &["apiserver_id_hash", "status"],
        "When the authentication configuration was last reloaded, by status.");
    AUTHENTICATION_CONFIG = gauge("apiserver_authentication_config_controller_last_config_info", Alpha, &["apiserver_id_hash", "hash"],
        "The authentication configuration in use, by its hash.");
    JWT_DURATION = seconds("apiserver_authentication_jwt_authenticator_latency_seconds", Alpha, &["jwt_issuer_hash", "result"], &JWT_BOUNDS,
        "How long the authentication of an OpenID provider's token took.");
    JWT_KEYS_FETCHED = gauge("apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds", Alpha, &["apiserver_id_hash", "jwt_issuer_hash", "result"],
        "When the keys of an OpenID provider were last fetched.");
    JWT_KEYS = gauge("apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info", Alpha, &["apiserver_id_hash", "hash", "jwt_issuer_hash"],
        "The last fetched key set of an OpenID provider, by its hash.");
    IMPERSONATIONS = counter("apiserver_impersonation_attempts_total", Alpha, &["decision", "mode"],
        "Impersonations, by decision and mode.");
    IMPERSONATION_DURATION = seconds("apiserver_impersonation_attempts_duration_seconds", Alpha, &["decision", "mode"], &IMPERSONATION_BOUNDS,
        "How long impersonations took.");
    IMPERSONATION_AUTHORIZATIONS = counter("apiserver_impersonation_authorization_attempts_total", Alpha, &["decision", "mode"],
        "Authorizations of impersonations, by decision and mode.");
    IMPERSONATION_AUTHORIZATION_DURATION = seconds("apiserver_impersonation_authorization_attempts_duration_seconds", Alpha, &["decision", "mode"], &IMPERSONATION_BOUNDS,
        "How long authorizations of impersonations took.");
    AUTHORIZATIONS = counter("authorization_attempts_total", Alpha, &["result"],
        "Authorization attempts, by result.");
    AUTHORIZATION_DURATION = seconds("authorization_duration_seconds", Alpha, &["result"], &ACCESS_BOUNDS,
        "How long authorization took.");
    DECISIONS = counter("apiserver_authorization_decisions_total", Alpha, &["decision", "name", "type"],
        "Final decisions of authorizers: allowed or denied.");
    AUTHORIZATION_WEBHOOK_EVALUATIONS = counter("apiserver_authorization_webhook_evaluations_total", Alpha, &["name", "result"],
        "Calls of authorization webhooks.");
    AUTHORIZATION_WEBHOOK_DURATION = seconds("apiserver_authorization_webhook_duration_seconds", Alpha, &["name", "result"], &WEBHOOK_BOUNDS,
        "How long calls of authorization webhooks took.");
    AUTHORIZATION_WEBHOOK_FAIL_OPEN = counter("apiserver_authorization_webhook_evaluations_fail_open_total", Alpha, &["name", "result"],
        "Failed calls of authorization webhooks with the failure policy NoOpinion.");
    AUTHORIZATION_CONDITIONS = seconds("apiserver_authorization_match_condition_evaluation_seconds", Alpha, &["name", "type"], &CONDITION_BOUNDS,
        "How long the evaluation of an authorization webhook's match conditions took.");
    AUTHORIZATION_CONDITION_ERRORS = counter("apiserver_authorization_match_condition_evaluation_errors_total", Alpha, &["name", "type"],
        "Requests for which the evaluation of an authorization webhook's match conditions failed.");
    AUTHORIZATION_CONDITION_EXCLUSIONS = counter("apiserver_authorization_match_condition_exclusions_total", Alpha, &["name", "type"],
        "Requests that did not satisfy the match conditions of an authorization webhook.");
    AUTHORIZATION_RELOADS = counter("apiserver_authorization_config_controller_automatic_reloads_total", Beta, &["apiserver_id_hash", "status"],
        "Reloads of the authorization configuration.");
    AUTHORIZATION_RELOADED = gauge("apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds", Beta, &["apiserver_id_hash", "status"],
        "When the authorization configuration was last reloaded, by status.");
    AUTHORIZATION_CONFIG = gauge("apiserver_authorization_config_controller_last_config_info", Alpha, &["apiserver_id_hash", "hash"],
        "The authorization configuration in use, by its hash.");
    NODE_GRAPH = seconds("node_authorizer_graph_actions_duration_seconds", Alpha, &["operation"], &NODE_GRAPH_BOUNDS,
        "How long a change of the node graph took.");
    TOKEN_REQUESTS = counter("authentication_token_cache_request_total", Alpha, &["status"],
        "Lookups of service account tokens in the cache of verified tokens, by hit or miss.");
    TOKEN_DURATION = seconds("authentication_token_cache_request_duration_seconds", Alpha, &["status"], &TOKEN_BOUNDS,
        "How long a lookup of a service account token took, its verification included.");
    TOKEN_FETCHES = counter("authentication_token_cache_fetch_total", Alpha, &["status"],
        "Verifications of service account tokens.");
    TOKENS_ACTIVE = gauge("authentication_token_cache_active_fetch_count", Alpha, &["status"],
        "Verifications of service account tokens in progress.");
    LEGACY_TOKENS = counter("serviceaccount_legacy_tokens_total", Alpha, &[],
        "Uses of legacy tokens, which are in secrets.");
    LEGACY_AUTOMATIC = counter("serviceaccount_legacy_auto_token_uses_total", Alpha, &[],
        "Uses of legacy tokens in secrets that the service account names.");
    LEGACY_MANUAL = counter("serviceaccount_legacy_manual_token_uses_total", Alpha, &[],
        "Uses of legacy tokens in other secrets.");
    LEGACY_INVALIDATED = counter("serviceaccount_invalid_legacy_auto_token_uses_total", Alpha, &[],
        "Uses of legacy tokens in secrets that are marked invalid.");
    STALE_TOKENS = counter("serviceaccount_stale_tokens_total", Alpha, &[],
        "Uses of stale tokens: those with an extended lifetime that the client should have replaced.");
    VALID_TOKENS = counter("serviceaccount_valid_tokens_total", Alpha, &[],
        "Uses of tokens with an extended lifetime that are not stale.");
    FILTER_DURATION = seconds("apiserver_request_filter_duration_seconds", Alpha, &["filter"], &FILTER_BOUNDS,
        "How long a step before the handler took.");
    CERTIFICATE_EXPIRATION = whole("apiserver_client_certificate_expiration_seconds", Alpha, &[], &EXPIRATION_BOUNDS,
        "Remaining validity of the client certificates of requests, in seconds.");
}
