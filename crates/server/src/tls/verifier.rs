//! What verifies chains of client certificates, replaced when the authorities change.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::danger::ClientCertVerifier;

/// Verifies by the authorities of one time.
pub(crate) type Believed = Arc<dyn ClientCertVerifier>;

/// Verifies by the authorities of now.
#[derive(Debug)]
pub(crate) struct Verifier(ArcSwap<Believed>);

impl Verifier {
    pub(crate) fn new(believed: Believed) -> Self {
        Self(ArcSwap::from_pointee(believed))
    }

    /// Other authorities hold from now on.
    pub(crate) fn replace(&self, believed: Believed) {
        self.0.store(Arc::new(believed));
    }

    /// What verifies now; the same pointer until the authorities change.
    pub(crate) fn current(&self) -> Arc<Believed> {
        self.0.load_full()
    }
}
