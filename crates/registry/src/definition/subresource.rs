//! The subresources of a resource, and how the engine handles requests for them.

use std::sync::Arc;

use pintle_meta::GroupVersionKind;
use pintle_value::Str;

use super::Verb;
use crate::action::Action;
use crate::strategy::Members;
use crate::table::Printer;

/// A subresource of a resource.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The name in the URL.
    pub name: Str,
    /// The kind of request and response bodies.
    pub kind: GroupVersionKind,
    /// The supported verbs.
    pub verbs: Vec<Verb>,
    /// How the engine handles a request.
    pub behaviour: SubresourceBehaviour,
    /// Makes the rows of a Table; `None` if the subresource has no Table.
    pub printer: Option<Arc<dyn Printer>>,
}

impl Subresource {
    /// Returns the kind of the body, where the body is not the object or a part of it.
    pub(crate) fn own_kind(&self) -> Option<&GroupVersionKind> {
        match self.behaviour {
            SubresourceBehaviour::Scale(_)
            | SubresourceBehaviour::Action(_)
            | SubresourceBehaviour::Token
            | SubresourceBehaviour::Connect => Some(&self.kind),
            _ => None,
        }
    }
}

/// How the engine handles requests for a subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubresourceBehaviour {
    /// Reads return the whole object. Writes change only these members and the metadata; the other
    /// members keep their stored values: `status`, `approval`, `ephemeralcontainers`, `finalize`.
    Part(Members),
    /// Reads and writes a Scale.
    Scale(Arc<ScalePaths>),
    /// A POST performs an action and stores no object of its own: `binding`, `eviction`.
    Action(Arc<dyn Action>),
    /// Connects the client to another server: `log`, `exec`, `proxy`. The engine does not serve it.
    Connect,
    /// `serviceaccounts/token`: the server responds to it and stores nothing.
    Token,
    /// In discovery and OpenAPI, but not implemented: refused with an error `Status`.
    Unserved,
}

/// The paths of a Scale's values in its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The desired count: `["spec", "replicas"]`.
    pub spec_replicas: Vec<Str>,
    /// The observed count.
    pub status_replicas: Vec<Str>,
    /// The label selector, if the kind has one: a string, a map, or a LabelSelector.
    pub selector: Option<Vec<Str>>,
    /// The version of the Scale.
    pub version: ScaleVersion,
}

/// A version of Scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleVersion {
    /// The group and version.
    pub api_version: Str,
    /// The name of the type in the schema of the resource.
    pub type_name: Str,
    /// Whether `status.selector` is a map of labels and `status.targetSelector` the selector's
    /// text.
    pub has_map: bool,
}

impl ScaleVersion {
    /// The current version.
    pub const V1: Self = Self {
        api_version: Str::const_new("autoscaling/v1"),
        type_name: Str::const_new("io.k8s.api.autoscaling.v1.Scale"),
        has_map: false,
    };
}
