//! A server that has things in it from the beginning.

use std::path::PathBuf;

use pintle_server::{Config, Error};

use crate::TestServer;

/// What a server is to have in it, and how it is to run.
pub struct Builder {
    config: Config,
}

impl Default for Builder {
    fn default() -> Self {
        Self { config: Config::ephemeral() }
    }
}

impl Builder {
    /// Applies what is in a file, or in the files of a directory: YAML or JSON.
    #[must_use]
    pub fn manifests(mut self, path: impl Into<PathBuf>) -> Self {
        self.config.manifests.push(path.into());
        self
    }

    /// Applies objects: one document or several, YAML or JSON.
    #[must_use]
    pub fn objects(mut self, text: impl Into<String>) -> Self {
        self.config.objects.push(text.into());
        self
    }

    /// Changes anything else about the server.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Starts it; it is ready, with all that is in it, when this returns.
    ///
    /// # Errors
    /// If it does not start, or an object is refused.
    pub fn start(self) -> Result<TestServer, Error> {
        TestServer::start_with(self.config)
    }
}
