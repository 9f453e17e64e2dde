//! The server that the scripts test, and its abilities.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use rustls::ClientConfig;

use crate::http::Connection;
use crate::kubeconfig::Cluster;

/// Makes a server compact its history.
type Compact = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// An API server with its credentials.
#[derive(Clone)]
pub struct Target {
    cluster: Cluster,
    with_identity: Arc<ClientConfig>,
    without_identity: Arc<ClientConfig>,
    abilities: BTreeSet<String>,
    compact: Option<Compact>,
}

impl Target {
    /// The server and user of a kubeconfig's current context.
    pub fn from_kubeconfig(path: &Path) -> Result<Self> {
        Self::new(Cluster::from_file(path)?)
    }

    /// A server with its credentials.
    pub fn new(cluster: Cluster) -> Result<Self> {
        Ok(Self {
            with_identity: cluster.tls(false)?,
            without_identity: cluster.tls(true)?,
            cluster,
            abilities: BTreeSet::new(),
            compact: None,
        })
    }

    /// The same server at another URL.
    #[must_use]
    pub fn at(mut self, server: &str) -> Self {
        server.trim_end_matches('/').clone_into(&mut self.cluster.server);
        self
    }

    /// Adds an ability that scripts may `require`.
    #[must_use]
    pub fn able(mut self, ability: &str) -> Self {
        self.abilities.insert(ability.to_owned());
        self
    }

    /// Sets the function that compacts the server's history, and adds the ability `compaction`.
    #[must_use]
    pub fn compacted_by(mut self, how: impl Fn() -> Result<()> + Send + Sync + 'static) -> Self {
        self.compact = Some(Arc::new(how));
        self.able("compaction")
    }

    /// The first of these abilities that the server lacks.
    pub fn lacks<'a>(&self, required: &'a [String]) -> Option<&'a str> {
        required.iter().find(|ability| !self.abilities.contains(*ability)).map(String::as_str)
    }

    /// Makes the server compact its history; nothing if no function for it is set.
    pub fn compact(&self) -> Result<()> {
        self.compact.as_ref().map_or(Ok(()), |how| how())
    }

    /// The server's address and the credentials.
    pub(crate) const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The server's URL.
    pub fn server(&self) -> &str {
        &self.cluster.server
    }

    /// A new connection, with or without credentials.
    pub fn connect(&self, anonymous: bool) -> Result<Connection> {
        let tls = if anonymous { &self.without_identity } else { &self.with_identity };
        Connection::open(&self.cluster, tls)
    }

    /// The header with the bearer token, if there is one.
    pub fn authorization(&self) -> Option<(String, String)> {
        let token = self.cluster.token.as_ref()?;
        Some(("Authorization".to_owned(), format!("Bearer {token}")))
    }
}
