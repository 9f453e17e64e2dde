//! What can be told a server about extension API servers.

use std::path::PathBuf;

/// How extension API servers are reached, and webhooks that are services: `--proxy-client-…` and
/// `--enable-aggregator-routing`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// A client certificate and its key by which they know this server, instead of one of an authority of
    /// its own.
    pub client_files: Option<(PathBuf, PathBuf)>,
    /// Services are reached at their endpoints, not at their cluster addresses.
    pub by_endpoints: bool,
}
