//! Measures where the time of a request goes: the sum of each layer, and the spans of a traced
//! request.
//!
//! Must not know: what a layer does, HTTP, how spans are exported, names of metrics.
//!
//! Invariants:
//! - A request that is not traced takes no lock here and allocates nothing but its [`Timing`],
//!   unless it calls webhooks or passes a client's context on.
//! - The memory of a traced request is bounded: by the number of its spans, and by the length of
//!   each text.

mod context;
mod layer;
mod span;
mod timing;

pub use context::SpanContext;
pub use layer::{LAYERS, Layer};
pub use span::{Attribute, Attributes, Finished, Ids, Kind, Open, Span, Start, Trace};
pub use timing::Timing;
