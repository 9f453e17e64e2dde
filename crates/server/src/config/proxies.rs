//! What can be told a server about proxies.

/// Where proxies of pods, services and nodes may lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxiedAddresses {
    /// To addresses of single machines that are valid beyond one link, as upstream has it: never to this
    /// machine, and not to a cloud's metadata.
    #[default]
    GlobalUnicast,
    /// Anywhere, for tests whose backends are on their own machine. No flag says so.
    Any,
}
