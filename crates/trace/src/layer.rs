//! The layers of the server in which a request spends time.

/// A layer of the server. No two are measured at the same time, except that
/// [`Admission`](Layer::Admission) contains the webhooks and the decoding of the objects that they
/// return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    Authentication,
    Impersonation,
    Authorization,
    /// Waiting for seats of priority and fairness.
    Queue,
    /// Receiving the body of the request.
    Receiving,
    /// Decoding the object in the body.
    Decoding,
    /// Decoding the stored object that a write changes.
    Loading,
    /// The admission plugins, policies and webhooks.
    Admission,
    MutatingWebhooks,
    ValidatingWebhooks,
    /// The rules of the kind.
    Validation,
    /// Committing to the store.
    Store,
    /// Making a Table or bare metadata from the objects of the response.
    Transformation,
    /// Encoding the response.
    Encoding,
    /// Sending the response.
    Sending,
}

/// All layers, in the order of the variants: about that in which a request reaches them.
pub const LAYERS: [Layer; 15] = [
    Layer::Authentication,
    Layer::Impersonation,
    Layer::Authorization,
    Layer::Queue,
    Layer::Receiving,
    Layer::Decoding,
    Layer::Loading,
    Layer::Admission,
    Layer::MutatingWebhooks,
    Layer::ValidatingWebhooks,
    Layer::Validation,
    Layer::Store,
    Layer::Transformation,
    Layer::Encoding,
    Layer::Sending,
];

impl Layer {
    /// The name of the layer's span; `None` if its parts have spans of their own, or if it has no
    /// span.
    pub(crate) const fn span(self) -> Option<&'static str> {
        Some(match self {
            Self::Authentication => "authentication",
            Self::Impersonation => "impersonation",
            Self::Authorization => "authorization",
            Self::Queue => "priorityandfairness",
            Self::Receiving => "Receive body",
            Self::Decoding => "Decode",
            Self::Loading => "Decode stored object",
            Self::Admission => "Admission",
            Self::Validation => "Validation",
            Self::Store => "Commit",
            Self::Transformation | Self::Encoding => "SerializeObject",
            Self::MutatingWebhooks | Self::ValidatingWebhooks | Self::Sending => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_is_at_its_index() {
        assert!(LAYERS.into_iter().enumerate().all(|(index, layer)| layer as usize == index));
    }
}
