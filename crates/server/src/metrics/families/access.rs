//! Who asks, and whether they may.

use pintle_measure::nanoseconds;

use super::Stability::Alpha;
use super::{Family, counter, doubling, families, seconds, whole};

const MILLISECOND: u64 = 1_000_000;

pub(crate) static ACCESS_BOUNDS: [u64; 15] = doubling(MILLISECOND);
pub(crate) static FILTER_BOUNDS: [u64; 13] =
    nanoseconds([0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0]);
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
    FILTER_DURATION = seconds("apiserver_request_filter_duration_seconds", Alpha, &["filter"], &FILTER_BOUNDS,
        "How long a step before the handler took.");
    CERTIFICATE_EXPIRATION = whole("apiserver_client_certificate_expiration_seconds", Alpha, &[], &EXPIRATION_BOUNDS,
        "How long the client certificates of requests are still valid.");
}
