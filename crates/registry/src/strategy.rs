//! The behaviour of a kind on create, update and delete: upstream's strategies.
//!
//! Built-in kinds implement [`Strategy`] with rows of data; a custom resource's strategy is made
//! from its definition. The engine calls only the trait.

use std::borrow::Cow;

use pintle_meta::{User, field, names};
use pintle_value::{Str, Value};

use crate::now::Now;

/// Paths of members from an object's root: `&[&["status"]]`.
pub type Members = &'static [&'static [&'static str]];

/// The behaviour of a kind.
///
/// Methods get the tree and change it in place; they do no I/O. `default` and `coerce` see the
/// version that the client sent; all other methods see the stored form. The default implementations
/// fit most kinds.
pub trait Strategy: Send + Sync {
    /// The rule for `metadata.name`.
    fn name_rule(&self) -> NameRule {
        NameRule::DnsSubdomain
    }

    /// Whether `generateName` gets a random suffix. If not, it is used as the name itself.
    fn generates_names(&self) -> bool {
        true
    }

    /// How the kind itself validates the metadata of writes to a part (a subresource, or `""` for
    /// the object itself).
    fn metadata_checks(&self, part: &str) -> MetadataChecks {
        let _ = part;
        MetadataChecks { as_update: 1, as_new: 0, qualified_finalizers: false }
    }

    /// The members of the metadata that a write to a part resets: those that its writer cannot own,
    /// but for `managedFields`.
    fn reset_metadata(&self, part: &str) -> Members {
        match self.owned(part) {
            Owned::Except(members) => members,
            Owned::Only(_) => &[],
        }
    }

    /// The annotation and its zero value that served versions use for a member of upstream's
    /// internal form. PartialObjectMetadata does not show it.
    fn internal_annotation(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Optional members that are plain numbers in upstream's internal form, so that a zero object
    /// has these members with the value 0.
    fn zeros(&self) -> Members {
        &[]
    }

    /// Whether PUT creates a missing object (STRAT-01).
    fn create_on_update(&self) -> bool {
        false
    }

    /// Whether PUT without a resource version overwrites (STRAT-02).
    fn unconditional_update(&self) -> bool {
        false
    }

    /// The members that a write to the resource itself resets to their old values: mostly `status`.
    fn reset_fields(&self) -> Members {
        &[]
    }

    /// The fields that a writer of a part (a subresource, or `""` for the object itself) can own
    /// (upstream: all fields but those of `GetResetFields`). A write to a part also resets metadata
    /// that its writer cannot own.
    fn owned(&self, part: &str) -> Owned {
        match part {
            "" => Owned::Except(self.reset_fields()),
            "status" => Owned::Except(&[&["metadata"], &["spec"]]),
            _ => Owned::Except(&[]),
        }
    }

    /// When `metadata.generation` grows.
    fn generation(&self) -> Generation {
        Generation::None
    }

    /// Whether DELETE returns the object instead of a Status (STRAT-03).
    fn delete_returns_object(&self) -> bool {
        false
    }

    /// What happens to dependents when a DELETE has no `propagationPolicy`.
    fn dependents(&self) -> Dependents {
        Dependents::Collected
    }

    /// The default grace period of a DELETE. `object` may have only its `metadata` and the
    /// [`grace_period_members`](Self::grace_period_members).
    fn grace_period(&self, object: &Value) -> GracePeriod {
        let _ = object;
        GracePeriod::None
    }

    /// The members besides `metadata` that `grace_period` reads.
    fn grace_period_members(&self) -> Members {
        &[]
    }

    /// The changes, other than `deletionTimestamp`, when an object is marked as deleted. They are
    /// within `metadata` if this is [`Deletion::Graceful`]; then the kind has neither
    /// `mark_terminating` nor `blocks_removal`.
    fn deletion(&self) -> Deletion {
        Deletion::Graceful
    }

    /// Changes an object that is marked as deleted and cannot be removed yet (a namespace's phase).
    fn mark_terminating(&self, object: &mut Value) {
        let _ = object;
    }

    /// Whether something other than `metadata.finalizers` blocks the removal of a deleted object (a
    /// namespace's `spec.finalizers`).
    fn blocks_removal(&self, object: &Value) -> bool {
        let _ = object;
        false
    }

    /// Whether decoding or validating even a small object can take long: the kind has users' CEL
    /// expressions, or its schema is not compiled yet.
    fn is_expensive(&self) -> bool {
        false
    }

    /// After how many seconds a controller removes an object (events: an hour).
    fn ttl_seconds(&self) -> Option<u64> {
        None
    }

    /// The members that field selectors can use, besides name and namespace (SEL-01).
    fn fields(&self) -> &[SelectableField] {
        &[]
    }

    /// The error message for a field selector with an unsupported label.
    fn unknown_field(&self, _api_version: &str, label: &str) -> String {
        unknown_field(self.fields(), label)
    }

    /// Drops nulls that the schema does not accept from a body. An apply configuration keeps such
    /// nulls, and validation checks them (upstream: coercion is part of decoding).
    fn coerce(&self, object: &mut Value) {
        let _ = object;
    }

    /// Sets the kind's own defaults, whenever an object is decoded.
    fn default(&self, object: &mut Value) {
        let _ = object;
    }

    /// Records the origin of a new object in it, whatever the client wrote there.
    fn record_origin(&self, object: &mut Value, origin: Origin<'_>) {
        let _ = (object, origin);
    }

    /// Changes a new object before validation: drops what clients may not set.
    fn prepare_create(&self, object: &mut Value) {
        let _ = object;
    }

    /// Changes an updated object before validation; `old` is the stored object.
    fn prepare_update(&self, new: &mut Value, old: &Value) {
        let _ = (new, old);
    }

    /// Returns why no object can be created now, if so.
    fn refuse_create(&self) -> Option<&'static str> {
        None
    }

    /// Returns why the object of this name cannot be deleted, if so.
    fn refuse_delete(&self, name: &str) -> Option<&'static str> {
        let _ = name;
        None
    }

    /// The warning for a client that deletes objects without a `propagationPolicy`.
    fn dependents_warning(&self) -> Option<&'static str> {
        None
    }

    /// Changes an object before validation when only the part `part` (a subresource) was written.
    fn prepare_part(&self, new: &mut Value, old: &Value, part: &str) {
        let _ = (new, old, part);
    }

    /// Sets timestamps for changes in an object. It runs after the other preparation; `old` is the
    /// stored object.
    fn set_timestamps(&self, new: &mut Value, old: Option<&Value>, now: Now) {
        let _ = (new, old, now);
    }

    /// Whether the engine validates the rules that the schema declares. A kind whose `validate`
    /// checks everything itself, in upstream's order, returns false.
    fn declared_rules(&self) -> bool {
        true
    }

    /// Validates an object beyond the schema's rules. `old` is the stored object, on updates;
    /// `part` is the written subresource, `""` for the object itself. Errors that ratcheting
    /// tolerates, because the update does not change the field, may become `warnings`.
    fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        part: &str,
        warnings: &mut Vec<String>,
    ) -> field::Errors {
        let _ = (new, old, part, warnings);
        field::Errors::new()
    }

    /// Returns warnings about a new object before it is prepared.
    fn early_warnings(&self, new: &Value) -> Vec<String> {
        let _ = new;
        Vec::new()
    }

    /// Returns warnings about an accepted object.
    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let _ = (new, old);
        Vec::new()
    }

    /// Returns warnings about an accepted write to a subresource.
    fn part_warnings(&self, new: &Value, old: &Value, part: &str) -> Vec<String> {
        let _ = (new, old, part);
        Vec::new()
    }
}

/// Facts about a new object that are not in its body.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The user who creates it.
    pub author: &'a User,
    /// Whether the client set labels. If not, existing labels are defaults.
    pub is_labelled: bool,
}

/// The fields that writers of a part of an object can own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// All fields except these and their descendants.
    Except(Members),
    /// Only these fields and their descendants; `*` stands for every item of a list.
    Only(Members),
}

/// How a kind validates the metadata of an update, besides the generic validation. As in upstream,
/// an invalid member is reported by each of these checks. A new object's metadata is validated
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataChecks {
    /// How often the new metadata is compared with the stored (upstream:
    /// `ValidateObjectMetaUpdate`).
    pub as_update: usize,
    /// How often it is validated like that of a new object (upstream: `ValidateObjectMeta`). Only
    /// this checks `generateName` by the kind's rule.
    pub as_new: usize,
    /// Whether these checks require that finalizers other than Kubernetes' own are qualified names.
    pub qualified_finalizers: bool,
}

/// Rules for `metadata.name`, by upstream's names (`k8s.io/apimachinery/pkg/api/validation`).
#[derive(Clone, Copy, Debug)]
pub enum NameRule {
    /// A DNS-1123 subdomain: most kinds.
    DnsSubdomain,
    /// A DNS-1123 label: namespaces.
    DnsLabel,
    /// A DNS-1035 label: services.
    Dns1035Label,
    /// Anything that can be a path segment: RBAC.
    PathSegment,
    /// A rule of the kind.
    Custom(fn(name: &str, prefix: bool) -> Vec<String>),
    /// A rule of the kind that depends on the object and on its old state.
    OfObject(fn(new: &Value, old: Option<&Value>, name: &str, prefix: bool) -> Vec<String>),
}

impl NameRule {
    /// Returns the errors of a name; `prefix` is true for the prefix of a generated name.
    pub fn check(self, new: &Value, old: Option<&Value>, name: &str, prefix: bool) -> Vec<String> {
        match self {
            Self::OfObject(rule) => rule(new, old, name, prefix),
            Self::DnsSubdomain => names::subdomain_rule(name, prefix),
            Self::DnsLabel => names::label_rule(name, prefix),
            Self::Dns1035Label => names::dns1035_rule(name, prefix),
            Self::PathSegment => names::path_segment_rule(name, prefix),
            Self::Custom(rule) => rule(name, prefix),
        }
    }
}

/// Returns most kinds' error message for an unsupported field label.
pub fn unknown_field(fields: &[SelectableField], label: &str) -> String {
    if fields.is_empty() {
        let known = "only \"metadata.name\", \"metadata.namespace\"";
        return format!("{label:?} is not a known field selector: {known}");
    }
    format!("field label not supported: {label}")
}

/// When `metadata.generation` grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has no generation.
    None,
    /// It starts at 1 and grows when any member other than `metadata` and `status` changes.
    Spec,
    /// As [`Generation::Spec`], and it also grows when a client sends an empty list in place of an
    /// absent one or the reverse, although both are stored as absent (upstream: `reflect.DeepEqual`
    /// instead of `Semantic.DeepEqual`).
    SpecAsSent,
    /// It starts at 1 and grows when any member other than `metadata` changes.
    Content,
    /// As [`Generation::Spec`], and it also grows when this member of `metadata` changes:
    /// `annotations` of deployments, `labels` of endpoint slices.
    SpecAnd(&'static str),
}

impl Generation {
    /// Returns when the generation grows on a write to a part. The additional member counts only in
    /// a write to the whole object (upstream: it is in the strategy of the resource, not of its
    /// status).
    pub(crate) const fn of_part(self) -> Self {
        match self {
            Self::SpecAnd(_) => Self::Spec,
            other => other,
        }
    }
}

/// The changes to an object when it is marked as deleted, besides `deletionTimestamp` (upstream:
/// namespaces and definitions have storage of their own).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The grace period, the generation, and the finalizer for dependents.
    Graceful,
    /// Only the finalizer for dependents.
    DependentsOnly,
    /// Only `deletionTimestamp`.
    MarkOnly,
}

/// What happens to the dependents of a deleted object (upstream: `GarbageCollectionPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// The garbage collector deletes them, unless the client asks otherwise.
    Collected,
    /// They lose the owner reference and stay, unless the client asks otherwise.
    Orphaned,
    /// Nothing, whatever the client asks: the kind has no dependents.
    None,
}

/// The default grace period of a kind, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GracePeriod {
    /// The kind has no grace period: the object is removed at once.
    None,
    /// The object needs no grace period: it is marked as deleted and removed at once.
    Zero,
    /// This many seconds, unless the client asks otherwise.
    Seconds(i64),
}

/// A member that field selectors can use.
#[derive(Clone, Debug)]
pub struct SelectableField {
    /// The label in `fieldSelector`: `spec.nodeName`.
    pub label: Cow<'static, str>,
    /// The place of the field's text in an object of the stored form.
    pub value: FieldText,
    /// Whether few objects have the same value, so that lists of one value use an index.
    pub is_selective: bool,
}

/// Paths of members.
pub type Paths = &'static [&'static [&'static str]];

/// How to get the text of a selectable member; `""` where it is absent.
#[derive(Clone, Debug)]
pub enum FieldText {
    /// By a function of an object that has at least the members at these paths.
    By(fn(&Value) -> Str, Paths),
    /// From the member at this path: integers and booleans as text.
    At(Vec<Str>),
}

impl FieldText {
    /// Returns the text for an object.
    pub fn of(&self, object: &Value) -> Str {
        match self {
            Self::By(text, _) => text(object),
            Self::At(path) => text_at(object, path),
        }
    }

    /// Returns the members that the text depends on.
    pub fn reads(&self) -> Vec<Vec<&str>> {
        match self {
            Self::By(_, paths) => paths.iter().map(|path| path.to_vec()).collect(),
            Self::At(path) => vec![path.iter().map(Str::as_str).collect()],
        }
    }
}

/// Returns the text at a path as selectors see it: integers and booleans as text, `""` if the
/// member is absent or of another type.
pub fn text_at<S: AsRef<str>>(object: &Value, path: &[S]) -> Str {
    match object.at(path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Int(number)) => Str::from(number.to_string()),
        Some(Value::Bool(truth)) => Str::from(if *truth { "true" } else { "false" }),
        _ => Str::default(),
    }
}
