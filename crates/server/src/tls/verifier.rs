//! The verifier of client certificates, replaced when CAs change.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::danger::ClientCertVerifier;

/// A verifier with a fixed set of CAs.
pub(crate) type Believed = Arc<dyn ClientCertVerifier>;

/// A verifier with the current CAs.
#[derive(Debug)]
pub(crate) struct Verifier(ArcSwap<Believed>);

impl Verifier {
    pub(crate) fn new(believed: Believed) -> Self {
        Self(ArcSwap::from_pointee(believed))
    }

    /// Replaces the CAs.
    pub(crate) fn replace(&self, believed: Believed) {
        self.0.store(Arc::new(believed));
    }

    /// The current verifier; the same pointer until the CAs change.
    pub(crate) fn current(&self) -> Arc<Believed> {
        self.0.load_full()
    }
}
