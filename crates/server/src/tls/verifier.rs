//! The verifier of client certificates, replaced when CAs change.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::chains::Chains;

/// A verifier with the current CAs.
#[derive(Debug)]
pub(crate) struct Verifier(ArcSwap<Chains>);

impl Verifier {
    pub(crate) fn new(chains: Chains) -> Self {
        Self(ArcSwap::from_pointee(chains))
    }

    /// Replaces the CAs.
    pub(super) fn replace(&self, chains: Chains) {
        self.0.store(Arc::new(chains));
    }

    /// The current verifier; the same pointer until the CAs change.
    pub(crate) fn current(&self) -> Arc<Chains> {
        self.0.load_full()
    }
}
