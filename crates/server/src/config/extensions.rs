//! Configuration of extension API servers.

use std::path::PathBuf;

/// The client of extension API servers, and of webhooks that name a service: `--proxy-client-…` and
/// `--enable-aggregator-routing`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// A client certificate and its key, instead of one from the server's own CA.
    pub client_files: Option<(PathBuf, PathBuf)>,
    /// Connects to the endpoints of services, not to their cluster addresses.
    pub by_endpoints: bool,
}
