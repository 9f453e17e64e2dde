//! Converts objects between versions without a server, for `pintle convert`.

use pintle_meta::version;
use pintle_registry::ResourceDefinition;
use pintle_value::{Map, Value};

use crate::{Feature, RuntimeConfig, definition::definitions, deprecation, generated, removed};

/// All versions of all built-in kinds, removed versions included.
pub struct Versions {
    definitions: Vec<ResourceDefinition>,
}

/// The minor releases of Kubernetes 1 that deprecated and removed a version of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The release that deprecated it.
    pub deprecated: u32,
    /// The release that removed it, if known.
    pub removed: Option<u32>,
    /// The replacement; empty if upstream names none.
    pub replacement: &'static str,
}

/// An object in another version.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The object.
    pub object: Value,
    /// The paths of members that the other version lacks.
    pub lost: Vec<String>,
    /// The errors for which a server would refuse it; only for CustomResourceDefinitions, of which
    /// v1 requires more than v1beta1.
    pub refused: Vec<String>,
}

/// The deprecation of a version of a kind; `None` if it is not deprecated.
pub fn life(api_version: &str, kind: &str) -> Option<Life> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut removed_versions = removed::all();
    let is_version = |row: &&removed::Removed| {
        (row.group, row.form.version) == (group, version)
            && row.type_name.rsplit_once('.').is_some_and(|(_, name)| name == kind)
    };
    let of = |deprecated: &deprecation::Deprecated| Life {
        deprecated: deprecated.since,
        removed: deprecated.removed,
        replacement: deprecated.replacement,
    };
    if let Some(row) = removed_versions.find(is_version) {
        return Some(of(&row.deprecated()));
    }
    let mut rows = generated::resources().iter();
    let row = rows.find(|r| (r.group, r.version, r.kind) == (group, version, kind))?;
    deprecation::find(row).map(of)
}

impl Versions {
    /// Returns all versions, with all features.
    ///
    /// # Errors
    /// Never: the names of the versions are this crate's own.
    pub fn all() -> Result<Self, crate::Error> {
        let config = RuntimeConfig::parse(["api/all=true,api/legacy=true"])?;
        let config = config.with(Feature::ALL.into_iter().collect());
        Ok(Self { definitions: definitions(&config) })
    }

    /// Returns the newest group and version of a kind's objects; `None` for other kinds.
    pub fn newest(&self, api_version: &str, kind: &str) -> Option<String> {
        let own = self.find(api_version, kind)?;
        let stored = own.storage_kind.group.as_str();
        let same = |other: &&ResourceDefinition| {
            is_same(own, other) && pintle_schema::is_builtin(&other.schema, other.ty)
        };
        let group = &own.resource.group;
        // Events of both groups are the same objects, and both groups are current.
        let group =
            if pintle_schema::is_builtin(&own.schema, own.ty) { group.as_str() } else { stored };
        let all = || self.definitions.iter().filter(same);
        let of_group = all().filter(|other| other.resource.group == group);
        let newest = of_group.min_by(|a, b| version::cmp(&a.resource.version, &b.resource.version));
        newest.or_else(|| all().next()).map(ResourceDefinition::api_version)
    }

    /// True if the kind has both versions.
    pub fn can_convert(&self, (api_version, kind): (&str, &str), wanted: &str) -> bool {
        let own = self.find(api_version, kind);
        own.is_some_and(|own| api_version != wanted && self.other(own, wanted).is_some())
    }

    /// Converts an object to another version; `None` if its kind has no such version.
    ///
    /// If the defaults of the two versions differ, the result states the value, so that the object
    /// keeps its meaning.
    pub fn convert(&self, object: &Value, wanted: &str) -> Option<Converted> {
        let text = |member| object.str_at(&[member]).unwrap_or_default();
        let own = self.find(text("apiVersion"), text("kind"))?;
        let other = self.other(own, wanted)?;
        let convert = |mut object: Value, from: &ResourceDefinition, to: &ResourceDefinition| {
            from.to_stored(&mut object);
            to.to_served(&mut object);
            object.make_object().insert("apiVersion", to.api_version());
            object
        };
        let mut defaulted = object.clone();
        own.set_defaults(&mut defaulted);
        let defaulted = convert(defaulted, own, other);
        let mut converted = convert(object.clone(), own, other);
        let mut defaulted_after = converted.clone();
        other.set_defaults(&mut defaulted_after);
        state_defaults(converted.make_object(), &defaulted, &defaulted_after);
        let mut lost = Vec::new();
        let back = convert(converted.clone(), other, own);
        missing(object, &back, &mut String::new(), &mut lost);
        let mut refused = Vec::new();
        if other.kind == "CustomResourceDefinition"
            && pintle_schema::is_builtin(&other.schema, other.ty)
        {
            pintle_crd::adapt_to_v1(&mut converted);
            let mut read = converted.clone();
            other.set_defaults(&mut read);
            let errors = other.strategy.validate(&read, None, "", &mut Vec::new());
            refused.extend(errors.iter().map(ToString::to_string));
        }
        // A manifest has no status.
        if converted.get("status").is_some_and(is_nothing) {
            converted.make_object().remove("status");
        }
        Some(Converted { object: converted, lost, refused })
    }

    fn find(&self, api_version: &str, kind: &str) -> Option<&ResourceDefinition> {
        let mut all = self.definitions.iter();
        all.find(|definition| definition.kind == kind && definition.api_version() == api_version)
    }

    fn other(&self, own: &ResourceDefinition, api_version: &str) -> Option<&ResourceDefinition> {
        let mut all = self.definitions.iter();
        all.find(|other| is_same(own, other) && other.api_version() == api_version)
    }
}

/// Whether two definitions are versions of the same objects.
fn is_same(a: &ResourceDefinition, b: &ResourceDefinition) -> bool {
    match (&a.storage, &b.storage) {
        (Some(a), Some(b)) => a.collection == b.collection,
        _ => false,
    }
}

/// Sets members of a converted object whose defaults (`after`) differ from those that they had in
/// the version before the conversion (`before`).
fn state_defaults(object: &mut Map, before: &Value, after: &Value) {
    for (name, before) in before.as_object().into_iter().flat_map(Map::iter) {
        let after = after.get(name);
        if after == Some(before) {
            continue;
        }
        match (object.get_mut(name), before, after) {
            (Some(Value::Object(own)), Value::Object(_), Some(after)) => {
                state_defaults(own, before, after)
            }
            (Some(Value::Array(own)), Value::Array(items), Some(Value::Array(after)))
                if own.len() == items.len() && after.len() == items.len() =>
            {
                for ((own, before), after) in own.iter_mut().zip(items).zip(after) {
                    match own {
                        Value::Object(own) => state_defaults(own, before, after),
                        own => *own = before.clone(),
                    }
                }
            }
            (None, Value::Object(_), Some(after)) => {
                let mut own = Map::new();
                state_defaults(&mut own, before, after);
                object.insert(name.clone(), own);
            }
            _ => _ = object.insert(name.clone(), before.clone()),
        }
    }
}

/// The largest number of lost members that are reported.
const LOST_MAX: usize = 20;

/// The members of an object, by path, that its other form does not have.
fn missing(object: &Value, back: &Value, path: &mut String, lost: &mut Vec<String>) {
    let length = path.len();
    let mut member = |name: &str, value: &Value, there: Option<&Value>| {
        path.push_str(name);
        match there {
            _ if lost.len() >= LOST_MAX => {}
            Some(there) => missing(value, there, path, lost),
            None if is_nothing(value) => {}
            None => lost.push(path.trim_start_matches('.').to_owned()),
        }
        path.truncate(length);
    };
    match (object, back) {
        (Value::Object(members), back) => {
            for (name, value) in members.iter() {
                member(&format!(".{name}"), value, back.get(name));
            }
        }
        (Value::Array(items), Value::Array(back)) => {
            for (i, value) in items.iter().enumerate() {
                member(&format!("[{i}]"), value, back.get(i));
            }
        }
        _ => {}
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.iter().all(|(_, value)| is_nothing(value)),
        _ => false,
    }
}
