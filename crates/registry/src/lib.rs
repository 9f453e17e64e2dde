//! The resource engine: resource definitions, the write path, lists, watches and the watch cache.
//!
//! It holds everything that is the same for every resource. A handler turns a request into a call
//! on [`Registry`]; the registry returns shared encoded objects, or a
//! [`pintle_meta::Status`].
//!
//! It must not know HTTP or any particular kind.

pub mod action;
pub mod admission;
pub mod allocation;
mod attached;
mod cache;
pub mod definer;
mod definition;
mod encodings;
mod feed;
mod list;
pub mod measures;
mod now;
mod object;
mod observer;
mod operation;
mod registry;
pub mod request;
mod resource;
pub mod results;
mod revision;
mod select;
mod strategy;
pub mod table;
mod undecryptable;
pub mod watch;
pub mod webhook;
pub mod work;
mod write;

pub use attached::Attached;
pub use cache::Head;
pub use definer::Definer;
pub use definition::{
    Conversion, Converting, Deprecation, Etcd, EtcdForm, Members, ResourceDefinition, ScalePaths,
    ScaleVersion, Scope, Storage, StorageConverter, Subresource, SubresourceBehaviour,
    UnservedVersion, Verb,
};
pub use encodings::{Encoded, Extra, event_type};
pub use feed::{Feed, FeedUpdate};
pub use object::{FRAME_TAIL, Index, Object, Unreadable, frame_head};
pub use observer::Observer;
pub use registry::{Options, Registry};
pub use resource::{Extent, Resource, View};
pub use strategy::{
    Deletion, Dependents, FieldText, Generation, GracePeriod, MetadataChecks, NameRule, Origin,
    Owned, Paths, SelectableField, Strategy, text_at, unknown_field,
};
pub use undecryptable::Retry;
pub use write::{HOLD_MAX, PostingHold};
