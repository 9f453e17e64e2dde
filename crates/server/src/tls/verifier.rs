//! The verifier of client certificates, replaced when CAs change.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::danger::ClientCertVerifier;

/// A verifier with a fixed set of CAs.
pub(crate) type FixedVerifier = Arc<dyn ClientCertVerifier>;

/// A verifier with the current CAs.
#[derive(Debug)]
pub(crate) struct Verifier(ArcSwap<FixedVerifier>);

impl Verifier {
    pub(crate) fn new(verifier: FixedVerifier) -> Self {
        Self(ArcSwap::from_pointee(verifier))
    }

    /// Replaces the CAs.
    pub(crate) fn replace(&self, verifier: FixedVerifier) {
        self.0.store(Arc::new(verifier));
    }

    /// The current verifier; the same pointer until the CAs change.
    pub(crate) fn current(&self) -> Arc<FixedVerifier> {
        self.0.load_full()
    }
}
