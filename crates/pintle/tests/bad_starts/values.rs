//! Values of flags that no server can start with, and texts that the error contains.

pub(crate) const ROWS: &[(&str, &[&str])] = &[
    ("--service-cluster-ip-range=10.0.0.0/31", &["--service-cluster-ip-range", "at least 8"]),
    ("--service-cluster-ip-range=10.0.0.0", &["--service-cluster-ip-range", "invalid CIDR"]),
    (
        "--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24",
        &["--service-cluster-ip-range", "different IP families"],
    ),
    ("--service-node-port-range=9-1", &["--service-node-port-range", "30000-32767"]),
    (
        "--enable-admission-plugins=Nope",
        &["--enable-admission-plugins: plugin \"Nope\" is unknown", "LimitRanger, "],
    ),
    (
        "--disable-admission-plugins=Nope",
        &["--disable-admission-plugins: plugin \"Nope\" is unknown"],
    ),
    (
        "--enable-admission-plugins=PodTolerationRestriction",
        &["--enable-admission-plugins: ", "not implemented"],
    ),
    ("--authorization-mode=", &["--authorization-mode: ", "ABAC, AlwaysAllow"]),
    ("--authorization-mode=rbac", &["--authorization-mode: ", "\"rbac\"", "RBAC, Webhook"]),
    ("--authorization-mode=RBAC,RBAC", &["--authorization-mode: ", "more than once"]),
    ("--anonymous-auth false", &["'false'", "--FLAG=false"]),
    ("--enable-priority-and-fairness true", &["'true'", "--FLAG=true"]),
    ("--anonymous-auth=perhaps", &["--anonymous-auth", "perhaps"]),
    ("--runtime-config=foo/v1", &["--runtime-config: ", "foo/v1"]),
    ("--runtime-config=apps/v7=true", &["--runtime-config: ", "apps/v7"]),
    ("--runtime-config=apps/v1=perhaps", &["--runtime-config: ", "perhaps"]),
    ("--feature-gates=Nope=true", &["--feature-gates", "Nope"]),
    ("--controllers=nope", &["--controllers: ", "nope"]),
    ("--service-account-issuer=", &["--service-account-issuer: ", "must not be empty"]),
    ("--service-account-issuer=:a", &["--service-account-issuer: ", "not a valid URL"]),
    (
        "--service-account-issuer=a --service-account-issuer=a",
        &["--service-account-issuer: ", "more than once"],
    ),
    ("--service-account-jwks-uri=nope", &["--service-account-jwks-uri: ", "https://"]),
    ("--service-account-jwks-uri=http://a/b", &["--service-account-jwks-uri: ", "https://"]),
    ("-v 99", &["'99'", "0..=10"]),
    ("--watch-history=5", &["--watch-history", "missing unit", "such as 90s"]),
    ("--request-timeout=soon", &["--request-timeout", "such as 90s"]),
    ("--request-timeout=0s", &["--request-timeout: ", "longer than zero"]),
    ("--watch-history-size=5q", &["--watch-history-size", "64Mi"]),
    ("--bind-address=nowhere", &["--bind-address", "nowhere"]),
    ("--no-such-flag", &["--no-such-flag"]),
];
