//! How objects of a kind behave: upstream's strategies.
//!
//! Built-in kinds are rows of data that implement [`Strategy`]; a custom resource's strategy is made
//! of its definition. The engine asks the trait and nothing else.

use std::borrow::Cow;

use pintle_meta::{User, field, names};
use pintle_value::{Str, Value};

use crate::definition::Members;
use crate::request::Now;

/// How objects of a kind behave.
///
/// Methods get the tree and change it in place; they do no I/O. `default` sees the version that the
/// client sent; all the others see the stored form. What is not said here is as for most kinds.
pub trait Strategy: Send + Sync {
    /// The rule for names.
    fn name_rule(&self) -> NameRule {
        NameRule::DnsSubdomain
    }

    /// A `generateName` is made a name by something random at its end. Where it is not, it is the name.
    fn generates_names(&self) -> bool {
        true
    }

    /// Finalizers must be qualified names, but for Kubernetes' own (upstream: the built-in kinds
    /// that check their metadata themselves).
    fn qualified_finalizers(&self) -> bool {
        false
    }

    /// An update's metadata is checked for all kinds alike and not by the kind again, so that what is wrong
    /// has one cause and not two.
    fn metadata_checked_once(&self) -> bool {
        false
    }

    /// An annotation that the versions which are served have in place of a member of upstream's internal
    /// form, and its zero value: where nothing but metadata is shown, it is not among it.
    fn stand_in(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Optional members that upstream's internal form has as plain numbers, so that its zero objects have them.
    fn zeros(&self) -> Members {
        &[]
    }

    /// PUT to a name that is free creates (STRAT-01).
    fn create_on_update(&self) -> bool {
        false
    }

    /// PUT without a resource version overwrites (STRAT-02).
    fn unconditional_update(&self) -> bool {
        false
    }

    /// Which members a write to the resource itself resets to what they were: mostly `status`.
    fn reset_fields(&self) -> Members {
        &[]
    }

    /// What the writers of a part (a subresource, or `""` for the object itself) can own; upstream's
    /// reset fields. Of metadata, what the writers of a part cannot own is also reset to what it was.
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

    /// DELETE answers with the object instead of a Status (STRAT-03).
    fn delete_returns_object(&self) -> bool {
        false
    }

    /// What becomes of the objects that have this one as their owner, where a DELETE does not say.
    fn dependents(&self) -> Dependents {
        Dependents::Collected
    }

    /// How long a DELETE lets the object live on.
    fn grace_period(&self, object: &Value) -> GracePeriod {
        let _ = object;
        GracePeriod::None
    }

    /// How the deletion of an object begins.
    fn deletion(&self) -> Deletion {
        Deletion::Usual
    }

    /// Changes an object whose deletion begins and cannot be finished at once (a namespace's phase).
    fn terminating(&self, object: &mut Value) {
        let _ = object;
    }

    /// Whether something besides `metadata.finalizers` keeps a deleted object from going (a
    /// namespace's `spec.finalizers`).
    fn held(&self, object: &Value) -> bool {
        let _ = object;
        false
    }

    /// Whether to read or check an object may take long however small it is: the kind's users wrote
    /// expressions for it, or its schema is still to be compiled.
    fn takes_long(&self) -> bool {
        false
    }

    /// Objects of the kind vanish by themselves after so many seconds (events: an hour).
    fn ttl_seconds(&self) -> Option<u64> {
        None
    }

    /// Members by which lists and watches may be selected, besides name and namespace (SEL-01).
    fn fields(&self) -> &[SelectableField] {
        &[]
    }

    /// The refusal of a field selector that names none of them, in a version.
    fn unknown_field(&self, _api_version: &str, label: &str) -> String {
        unknown_field(self.fields(), label)
    }

    /// Leaves out of a body what its schema takes for nothing said. What is applied says what it says:
    /// there a null stays, and is judged (upstream: coercion belongs to decoding).
    fn coerce(&self, object: &mut Value) {
        let _ = object;
    }

    /// Sets what the kind's defaults say, on every decode of the kind.
    fn default(&self, object: &mut Value) {
        let _ = object;
    }

    /// Notes in a new object where it comes from, whatever the client says of that.
    fn note_origin(&self, object: &mut Value, origin: Origin<'_>) {
        let _ = (object, origin);
    }

    /// Changes a new object before it is validated: drops what clients may not set.
    fn prepare_create(&self, object: &mut Value) {
        let _ = object;
    }

    /// Changes an updated object before it is validated; `old` is what is stored.
    fn prepare_update(&self, new: &mut Value, old: &Value) {
        let _ = (new, old);
    }

    /// Why no object may be created for now, where that is so.
    fn refuse_create(&self) -> Option<&'static str> {
        None
    }

    /// Why the object of this name may not be deleted, where that is so.
    fn refuse_delete(&self, name: &str) -> Option<&'static str> {
        let _ = name;
        None
    }

    /// What a client should hear that deletes objects and does not say what becomes of their dependents.
    fn dependents_warning(&self) -> Option<&'static str> {
        None
    }

    /// Changes an object of which only a part was written, before it is validated; `part` is the
    /// subresource (`status`).
    fn prepare_part(&self, new: &mut Value, old: &Value, part: &str) {
        let _ = (new, old, part);
    }

    /// Notes in an object when something in it came to be. It comes after the other preparation; `old`
    /// is what is stored.
    fn note_time(&self, new: &mut Value, old: Option<&Value>, now: Now) {
        let _ = (new, old, now);
    }

    /// Whether [`Strategy::validate`] leaves to the schema the rules that the schema declares. A kind
    /// that checks everything itself, in upstream's order, says no.
    fn declared_rules(&self) -> bool {
        true
    }

    /// What is wrong with an object beyond what the schema's rules say. `old` is what is stored, on
    /// updates; `part` is the subresource that is written, `""` for the object itself. What is borne
    /// because the update leaves it as it was may be told in `warnings`.
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

    /// What a client should hear about an object that is accepted.
    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let _ = (new, old);
        Vec::new()
    }

    /// What a client should hear about a part of an object that is accepted.
    fn part_warnings(&self, new: &Value, old: &Value, part: &str) -> Vec<String> {
        let _ = (new, old, part);
        Vec::new()
    }
}

/// What is known of a new object besides what it says.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Who asks for it.
    pub author: &'a User,
    /// Whether the client gave it labels; if not, those that it has are defaults.
    pub is_labelled: bool,
}

/// Which fields the writers of a part of an object can own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// All but these and what is in them.
    Except(Members),
    /// None but these and what is in them; `*` stands for every item of a list.
    Only(Members),
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
    /// Anything that can stand in a path: RBAC.
    PathSegment,
    /// A rule of the kind's own.
    Custom(fn(name: &str, prefix: bool) -> Vec<String>),
    /// A rule of the kind's own, that goes by the object and what it replaces.
    OfObject(fn(new: &Value, old: Option<&Value>, name: &str, prefix: bool) -> Vec<String>),
}

impl NameRule {
    /// What is wrong with a name of an object; `prefix` for the beginning of a generated one.
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

/// What most kinds say of a field label that is none of theirs.
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
    /// The kind has none.
    None,
    /// It starts at 1 and grows when any member other than `metadata` and `status` changes.
    Spec,
    /// As [`Generation::Spec`], and it also grows when an empty list takes the place of none, or none that of an
    /// empty list, though neither is kept (upstream: `reflect.DeepEqual` in place of `Semantic.DeepEqual`).
    SpecAsSent,
    /// It starts at 1 and grows when any member other than `metadata` changes.
    Content,
    /// As [`Generation::Spec`], and it also grows when this member of `metadata` changes:
    /// `annotations` of deployments, `labels` of endpoint slices.
    SpecAnd(&'static str),
}

impl Generation {
    /// When it grows as a part is written: what the kind looks at beyond its spec, it looks at where the
    /// whole object is written (upstream: in the strategy of the resource, not in that of its status).
    pub(crate) const fn of_part(self) -> Self {
        match self {
            Self::SpecAnd(_) => Self::Spec,
            other => other,
        }
    }
}

/// How the deletion of an object begins (upstream: namespaces and definitions have storage of their own).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// With a period of grace, a new generation, and what is to become of its dependents.
    Usual,
    /// With the last of these only.
    Heeding,
    /// With nothing but the mark.
    Marking,
}

/// What becomes of the dependents of a deleted object (upstream: `GarbageCollectionPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// They go after it, unless the client says otherwise.
    Collected,
    /// They stay, unless the client says otherwise.
    Orphaned,
    /// It has none, whatever the client says.
    None,
}

/// How long after a DELETE an object lives on, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GracePeriod {
    /// The kind knows no grace: it goes at once.
    None,
    /// This one needs none: it is marked as going, and goes at once.
    Zero,
    /// So long, unless the client says otherwise.
    Seconds(i64),
}

/// A member by which lists and watches may be selected.
#[derive(Clone, Debug)]
pub struct SelectableField {
    /// The label in `fieldSelector`: `spec.nodeName`.
    pub label: Cow<'static, str>,
    /// Where its text is in an object of the stored form.
    pub value: FieldText,
}

/// Paths of members.
pub type Paths = &'static [&'static [&'static str]];

/// Where the text of a selectable member is; `""` where it is absent.
#[derive(Clone, Debug)]
pub enum FieldText {
    /// A function tells, of an object that has at least what is at these paths.
    By(fn(&Value) -> Str, Paths),
    /// At this path of members: numbers and booleans in words.
    At(Vec<Str>),
}

impl FieldText {
    /// The text of an object's member.
    pub fn of(&self, object: &Value) -> Str {
        match self {
            Self::By(text, _) => text(object),
            Self::At(path) => text_at(object, path),
        }
    }

    /// The members that the text depends on.
    pub fn reads(&self) -> Vec<Vec<&str>> {
        match self {
            Self::By(_, paths) => paths.iter().map(|path| path.to_vec()).collect(),
            Self::At(path) => vec![path.iter().map(Str::as_str).collect()],
        }
    }
}

/// The text at a path as selectors see it: numbers and booleans in words, `""` where there is none.
pub fn text_at<S: AsRef<str>>(object: &Value, path: &[S]) -> Str {
    match object.at(path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Int(number)) => Str::from(number.to_string()),
        Some(Value::Bool(truth)) => Str::from(if *truth { "true" } else { "false" }),
        _ => Str::default(),
    }
}
