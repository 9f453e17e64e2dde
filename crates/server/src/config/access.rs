//! What can be told a server about tokens and front proxies.

use std::path::PathBuf;
use std::time::Duration;

/// Service accounts' tokens: `--service-account-…` and `--api-audiences`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAccounts {
    /// Keys that verify tokens, as PEM: public keys, certificates, or private keys. Where none is given,
    /// the signing key's public half does.
    pub key_files: Vec<PathBuf>,
    /// The key that signs tokens, as PEM; `sa.key` beside the certificates, made at the first start,
    /// where nothing is said.
    pub signing_key_file: Option<PathBuf>,
    /// Under which names tokens are accepted; they are issued under the first.
    /// [`ServiceAccounts::DEFAULT_ISSUER`] where nothing is said.
    pub issuers: Vec<String>,
    /// For whom tokens of the API are; the issuers where nothing is said.
    pub api_audiences: Vec<String>,
    /// How long tokens live at most; `None` for as long as is asked for.
    pub max_token_expiration: Option<Duration>,
    /// Let tokens of pods that ask for an hour and seven seconds live for a year.
    pub extend_token_expiration: bool,
    /// Where the keys are published, if not at this server.
    pub jwks_uri: Option<String>,
}

impl ServiceAccounts {
    /// The issuer that clusters mostly have.
    pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
}

/// How front proxies say who asks: `--requestheader-…`. They may where there is an authority for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The authority of front proxies' certificates.
    pub client_ca_file: Option<PathBuf>,
    /// The common names that they may have; any where none is given.
    pub allowed_names: Vec<String>,
    /// Headers that hold the user's name; the first that does counts.
    pub username_headers: Vec<String>,
    /// Headers that hold the user's uid.
    pub uid_headers: Vec<String>,
    /// Headers that hold groups.
    pub group_headers: Vec<String>,
    /// How headers begin that hold what else is known.
    pub extra_header_prefixes: Vec<String>,
}

impl Default for RequestHeader {
    fn default() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            client_ca_file: None,
            allowed_names: Vec::new(),
            username_headers: one("x-remote-user"),
            uid_headers: one("x-remote-uid"),
            group_headers: one("x-remote-group"),
            extra_header_prefixes: one("x-remote-extra-"),
        }
    }
}
