//! Configuration of proxied requests.

/// The addresses that proxied requests to pods, services and nodes may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxiedAddresses {
    /// Global unicast addresses, as in upstream: neither loopback nor link-local ones, so not a
    /// cloud's metadata server.
    #[default]
    GlobalUnicast,
    /// Any address, for tests whose backends are on their own machine. No flag sets this.
    Any,
}
