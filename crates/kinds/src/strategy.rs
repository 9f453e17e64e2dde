//! The strategies of kinds: a few bases, and the members in which kinds differ from them.
//!
//! A kind's entry takes a base and changes members with struct-update syntax: `Strategy {
//! create_on_update: true, ..PLAIN }`.
//!
//! [`Strategy`] describes how the engine uses the members. The engine resets `metadata.generation`
//! before it calls `prepare_create` and `prepare_update`, so these can set it for kinds that count
//! differently.

mod metadata;

use pintle_meta::field;
use pintle_registry::{
    self as registry, Deletion, Dependents, Generation, GracePeriod, Members, NameRule, Origin,
    Owned, SelectableField, request::Now, unknown_field,
};
use pintle_value::{Str, Value};

use crate::features::Features;
use crate::gates::{self, Gated};

pub(crate) use metadata::{
    AS_NEW, AS_UPDATE, AS_UPDATE_AND_NEW, METADATA_OF_OBJECT, NOT_CHECKED, keep_labels,
    keep_metadata, keep_whole_metadata,
};
pub(crate) use pintle_registry::MetadataChecks;
pub(crate) use pintle_registry::text_at as text;

/// The behaviour of a kind as a row of data: each member has the meaning of the method of that name
/// in [`pintle_registry::Strategy`].
#[derive(Clone)]
pub(crate) struct Strategy {
    pub name: NameRule,
    pub generates_names: bool,
    pub metadata: MetadataChecks,
    pub zeros: Members,
    pub internal_annotation: Option<(&'static str, &'static str)>,
    pub create_on_update: bool,
    pub unconditional_update: bool,
    pub reset_fields: Members,
    /// The subresources whose writers can own other fields than usual.
    pub owned: &'static [(&'static str, Owned)],
    /// The fields that are dropped while their gate is off.
    pub gated: &'static [Gated],
    /// The features that are on.
    pub features: Features,
    pub generation: Generation,
    pub delete_returns_object: bool,
    pub dependents: Dependents,
    pub dependents_warning: Option<&'static str>,
    pub refuse_delete: fn(&str) -> Option<&'static str>,
    /// `None` if the kind has no graceful deletion.
    pub graceful: Option<Graceful>,
    pub deletion: Deletion,
    pub terminating: fn(&mut Value),
    pub held: fn(&Value) -> bool,
    pub is_expensive: bool,
    pub ttl_seconds: Option<u64>,
    pub fields: &'static [SelectableField],
    /// The message for an unknown field label, if the kind has its own.
    pub unknown_label: Option<fn(api_version: &str, label: &str) -> String>,
    pub default: fn(&mut Value),
    pub note_origin: fn(&mut Value, Origin<'_>),
    pub prepare_create: fn(&mut Value),
    pub prepare_update: fn(&mut Value, &Value),
    pub note_time: fn(&mut Value, Option<&Value>, Now),
    /// Validates writes to the object itself.
    pub validate: fn(&Value, Option<&Value>) -> field::Errors,
    pub declared_rules: bool,
    /// Warnings about a new object before it is prepared.
    pub early_warnings: fn(&Value) -> Vec<String>,
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// The subresources with behaviour of their own.
    pub parts: &'static [Part],
}

/// The graceful deletion of a kind.
#[derive(Clone, Copy)]
pub(crate) struct Graceful {
    /// The default grace period of an object.
    pub period: fn(&Value) -> GracePeriod,
    /// The members besides `metadata` that decide it.
    pub reads: Members,
}

/// The behaviour of a subresource, as a row of data. Functions get the whole new object, which
/// differs from the stored one only in the subresource's fields and the metadata, and the stored
/// one.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// The subresource: `status`.
    pub name: &'static str,
    /// How the kind validates the metadata; `None` if it only compares it with the stored.
    pub metadata: Option<MetadataChecks>,
    /// Changes the new object before it is validated.
    pub prepare: fn(&mut Value, &Value),
    /// Validates the new object.
    pub validate: fn(&Value, &Value) -> field::Errors,
    /// The warnings for the client.
    pub warnings: fn(&Value, &Value) -> Vec<String>,
}

/// A subresource without behaviour of its own.
pub(crate) const fn part(name: &'static str) -> Part {
    Part {
        name,
        metadata: None,
        prepare: |_, _| {},
        validate: |_, _| field::Errors::new(),
        warnings: |_, _| Vec::new(),
    }
}

impl Strategy {
    fn part(&self, name: &str) -> Option<&'static Part> {
        self.parts.iter().find(|part| part.name == name)
    }
}

/// A kind without a status and without special behaviour, such as ConfigMaps.
pub(crate) const PLAIN: Strategy = Strategy {
    name: NameRule::DnsSubdomain,
    generates_names: true,
    metadata: AS_UPDATE_AND_NEW,
    zeros: &[],
    internal_annotation: None,
    create_on_update: false,
    unconditional_update: true,
    reset_fields: &[],
    owned: &[],
    gated: &[],
    features: Features::NONE,
    generation: Generation::None,
    delete_returns_object: false,
    dependents: Dependents::Collected,
    dependents_warning: None,
    refuse_delete: |_| None,
    graceful: None,
    deletion: Deletion::Graceful,
    terminating: |_| {},
    held: |_| false,
    is_expensive: false,
    ttl_seconds: None,
    fields: &[],
    unknown_label: None,
    default: |_| {},
    note_origin: |_, _| {},
    prepare_create: |_| {},
    prepare_update: |_, _| {},
    note_time: |_, _, _| {},
    validate: |_, _| field::Errors::new(),
    declared_rules: true,
    early_warnings: |_| Vec::new(),
    warnings: |_, _| Vec::new(),
    parts: &[],
};

/// A kind whose status only `/status` writes: a new object has an empty status (META-11).
pub(crate) const WITH_STATUS: Strategy = Strategy { reset_fields: &[&["status"]], ..PLAIN };

/// Whether the writers of a part can own no metadata.
fn is_alone(owned: Owned) -> bool {
    matches!(owned, Owned::Except(paths) if paths.iter().any(|path| *path == ["metadata"]))
}

/// Ownership of a status whose writers can set no metadata.
pub(crate) const STATUS_ALONE: &[(&str, Owned)] =
    &[("status", Owned::Except(&[&["metadata"], &["spec"]]))];

/// A kind whose generation counts the changes of its spec.
pub(crate) const COUNTED: Strategy = Strategy { generation: Generation::Spec, ..PLAIN };

/// A kind with a status whose generation counts the changes of its spec: the workloads.
pub(crate) const COUNTED_WITH_STATUS: Strategy =
    Strategy { generation: Generation::Spec, ..WITH_STATUS };

/// A selectable field: the text at a path, or the result of a function of the members at some
/// paths. `selective`: few objects have the same value.
macro_rules! selectable {
    (selective $label:literal at $($member:literal).+) => {
        pintle_registry::SelectableField {
            is_selective: true,
            ..crate::strategy::selectable!($label at $($member).+)
        }
    };
    ($label:literal at $($member:literal).+) => {
        crate::strategy::selectable!($label by |object| {
            crate::strategy::text(object, &[$($member),+])
        }, of $($member).+)
    };
    ($label:literal by $text:expr $(, of $($member:literal).+)*) => {
        pintle_registry::SelectableField {
            label: std::borrow::Cow::Borrowed($label),
            value: pintle_registry::FieldText::By($text, &[$(&[$($member),+]),*]),
            is_selective: false,
        }
    };
}
pub(crate) use selectable;

/// A boolean for selectors: `false` if absent.
pub(crate) fn truth(object: &Value, path: &[&str]) -> Str {
    let truth = object.at(path).and_then(Value::as_bool).unwrap_or(false);
    Str::from(if truth { "true" } else { "false" })
}

/// A count for selectors: `0` if absent.
pub(crate) fn count(object: &Value, path: &[&str]) -> Str {
    Str::from(object.at(path).and_then(Value::as_int).unwrap_or(0).to_string())
}

impl registry::Strategy for Strategy {
    fn name_rule(&self) -> NameRule {
        self.name
    }

    fn metadata_checks(&self, part: &str) -> MetadataChecks {
        match self.part(part) {
            _ if part.is_empty() => self.metadata,
            Some(Part { metadata: Some(checks), .. }) => *checks,
            _ => MetadataChecks { as_update: 1, as_new: 0, ..self.metadata },
        }
    }

    fn reset_metadata(&self, part: &str) -> Members {
        match self.owned(part) {
            owned if is_alone(owned) => METADATA_OF_OBJECT,
            Owned::Except(members) => members,
            Owned::Only(_) => &[],
        }
    }

    fn generates_names(&self) -> bool {
        self.generates_names
    }

    fn zeros(&self) -> Members {
        self.zeros
    }

    fn internal_annotation(&self) -> Option<(&'static str, &'static str)> {
        self.internal_annotation
    }

    fn create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn unconditional_update(&self) -> bool {
        self.unconditional_update
    }

    fn reset_fields(&self) -> Members {
        self.reset_fields
    }

    fn owned(&self, part: &str) -> Owned {
        let particular = self.owned.iter().find(|(name, _)| *name == part);
        match (particular, part) {
            (Some((_, owned)), _) => *owned,
            (None, "") => Owned::Except(self.reset_fields),
            (None, "status") => Owned::Except(&[&["spec"]]),
            (None, "finalize") => Owned::Except(&[&["status"]]),
            (None, _) => Owned::Except(&[]),
        }
    }

    fn generation(&self) -> Generation {
        self.generation
    }

    fn delete_returns_object(&self) -> bool {
        self.delete_returns_object
    }

    fn dependents(&self) -> Dependents {
        self.dependents
    }

    fn dependents_warning(&self) -> Option<&'static str> {
        self.dependents_warning
    }

    fn refuse_delete(&self, name: &str) -> Option<&'static str> {
        (self.refuse_delete)(name)
    }

    fn grace_period(&self, object: &Value) -> GracePeriod {
        self.graceful.map_or(GracePeriod::None, |graceful| (graceful.period)(object))
    }

    fn grace_period_members(&self) -> Members {
        self.graceful.map_or(&[], |graceful| graceful.reads)
    }

    fn deletion(&self) -> Deletion {
        self.deletion
    }

    fn mark_terminating(&self, object: &mut Value) {
        (self.terminating)(object);
    }

    fn blocks_removal(&self, object: &Value) -> bool {
        (self.held)(object)
    }

    fn is_expensive(&self) -> bool {
        self.is_expensive
    }

    fn ttl_seconds(&self) -> Option<u64> {
        self.ttl_seconds
    }

    fn fields(&self) -> &[SelectableField] {
        self.fields
    }

    fn unknown_field(&self, api_version: &str, label: &str) -> String {
        match self.unknown_label {
            Some(words) => words(api_version, label),
            None => unknown_field(self.fields, label),
        }
    }

    fn default(&self, object: &mut Value) {
        (self.default)(object);
    }

    fn record_origin(&self, object: &mut Value, origin: Origin<'_>) {
        (self.note_origin)(object, origin);
    }

    fn prepare_create(&self, object: &mut Value) {
        gates::drop(object, None, self.gated, self.features);
        (self.prepare_create)(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        gates::drop(new, Some(old), self.gated, self.features);
        (self.prepare_update)(new, old);
    }

    fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        part: &str,
        _warnings: &mut Vec<String>,
    ) -> field::Errors {
        match (self.part(part), old) {
            (Some(part), Some(old)) => (part.validate)(new, old),
            _ if part.is_empty() => (self.validate)(new, old),
            _ => field::Errors::new(),
        }
    }

    fn prepare_part(&self, new: &mut Value, old: &Value, part: &str) {
        gates::drop(new, Some(old), self.gated, self.features);
        // Writers of a subresource cannot change fields that they cannot own.
        if is_alone(self.owned(part)) {
            keep_metadata(new, old);
        }
        if let Some(part) = self.part(part) {
            (part.prepare)(new, old);
        }
    }

    fn set_timestamps(&self, new: &mut Value, old: Option<&Value>, now: Now) {
        (self.note_time)(new, old, now);
    }

    fn declared_rules(&self) -> bool {
        self.declared_rules
    }

    fn part_warnings(&self, new: &Value, old: &Value, part: &str) -> Vec<String> {
        self.part(part).map_or_else(Vec::new, |part| (part.warnings)(new, old))
    }

    fn early_warnings(&self, new: &Value) -> Vec<String> {
        (self.early_warnings)(new)
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        (self.warnings)(new, old)
    }
}
