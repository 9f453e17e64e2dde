//! The builder of a server with initial objects and a changed configuration.

use std::path::PathBuf;

use pintle_server::{Config, Error};

use crate::TestServer;

/// The configuration of a server that will be started.
pub struct Builder {
    config: Config,
}

impl Default for Builder {
    fn default() -> Self {
        Self { config: Config::ephemeral() }
    }
}

impl Builder {
    /// Applies the objects in a file, or in the files of a directory: YAML or JSON.
    #[must_use]
    pub fn manifests(mut self, path: impl Into<PathBuf>) -> Self {
        self.config.manifests.push(path.into());
        self
    }

    /// Applies objects from one or several documents: YAML or JSON.
    #[must_use]
    pub fn objects(mut self, text: impl Into<String>) -> Self {
        self.config.objects.push(text.into());
        self
    }

    /// Changes any other part of the configuration.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Starts the server. It is ready and has all objects when this returns.
    ///
    /// # Errors
    /// If the server does not start, or refuses an object.
    pub fn start(self) -> Result<TestServer, Error> {
        TestServer::start_with(self.config)
    }
}
