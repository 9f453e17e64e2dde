//! The declarations of schemas for expressions, with the minimum size of values in a request, from
//! which upstream estimates their maximum number.

use std::sync::Arc;

use pintle_cel::{Declaration, List as ListOf, Map, Merge, Object};

use crate::structural::{List, Structural, Type};

/// The maximum size of a request in bytes.
pub(super) const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// A declaration, and the minimum size of its values in JSON.
#[derive(Clone)]
pub(super) struct Declared {
    pub(super) declaration: Declaration,
    pub(super) size_min: u64,
}

const fn declared(declaration: Declaration, size_min: u64) -> Option<Declared> {
    Some(Declared { declaration, size_min })
}

/// The declaration of a schema; `None` if expressions cannot access it.
pub(super) fn declare(schema: &Structural, is_object: bool) -> Option<Declared> {
    let found = declare_plain(schema, is_object)?;
    if !schema.nullable {
        return Some(found);
    }
    let declaration = Declaration::Nullable(Arc::new(found.declaration));
    declared(declaration, found.size_min)
}

fn declare_plain(schema: &Structural, is_object: bool) -> Option<Declared> {
    let rules = schema.rules.as_deref();
    let bound = |given: Option<i64>| given.map(|given| u64::try_from(given).unwrap_or(0));
    if schema.int_or_string {
        let length = bound(rules.and_then(|rules| rules.max_length)).map(|most| most * 4);
        let size_max = length.unwrap_or(REQUEST_BYTES_MAX - 2);
        return declared(Declaration::IntOrString { size_max }, 1);
    }
    match schema.ty? {
        Type::Boolean => declared(Declaration::Bool, 4),
        Type::Integer => declared(Declaration::Int, 1),
        Type::Number => declared(Declaration::Double, 1),
        Type::String => text(schema),
        Type::Array => {
            let items = schema.items.as_deref()?;
            let items = declare(items, items.embedded)?;
            let most = bound(rules.and_then(|rules| rules.max_items));
            let size_max = most.unwrap_or((REQUEST_BYTES_MAX - 2) / (items.size_min + 1));
            let merge = match &schema.list {
                List::Atomic => Merge::Atomic,
                List::Set => Merge::Set,
                List::Map(keys) => Merge::Keys(keys.clone()),
            };
            let list = ListOf { items: items.declaration, merge, size_max };
            declared(Declaration::List(Arc::new(list)), 2)
        }
        Type::Object => match schema.additional() {
            Some(values) => {
                let values = declare(values, values.embedded)?;
                let most = bound(rules.and_then(|rules| rules.max_properties));
                let size_max = most.unwrap_or((REQUEST_BYTES_MAX - 2) / (values.size_min + 6));
                let map = Map { values: values.declaration, size_max };
                declared(Declaration::Map(Arc::new(map)), 2)
            }
            None => object(schema, is_object),
        },
    }
}

/// Whether a schema declares all members that every object has; then it is used unchanged.
fn declares_object_members(schema: &Structural) -> bool {
    let of = |schema: Option<&Structural>, ty| schema.is_some_and(|schema| schema.ty == Some(ty));
    let text = |schema: &Structural, name: &str| of(schema.property(name), Type::String);
    let metadata = schema.property("metadata");
    let named = |metadata: &Structural| text(metadata, "name") && text(metadata, "generateName");
    text(schema, "kind")
        && text(schema, "apiVersion")
        && of(metadata, Type::Object)
        && metadata.is_some_and(named)
}

fn object(schema: &Structural, is_object: bool) -> Option<Declared> {
    let is_object = is_object && !declares_object_members(schema);
    let required = schema.rules.as_deref().map_or(&[][..], |rules| &rules.required);
    let mut size_min = 2;
    let mut fields = Vec::new();
    for (name, property) in &schema.properties {
        if is_object && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let Some(found) = declare(property, property.embedded) else { continue };
        if required.contains(name) && property.default.is_none() {
            size_min += name.len() as u64 + found.size_min + 4;
        }
        fields.push((name.clone(), found.declaration));
    }
    if is_object {
        let text = Declaration::String { size_max: REQUEST_BYTES_MAX - 2 };
        let named = [("generateName".into(), text.clone()), ("name".into(), text.clone())];
        let metadata = Declaration::Object(Object::new("object", named));
        fields.push(("apiVersion".into(), text.clone()));
        fields.push(("kind".into(), text));
        fields.push(("metadata".into(), metadata));
    }
    declared(Declaration::Object(Object::new("object", fields)), size_min)
}

fn text(schema: &Structural) -> Option<Declared> {
    let rules = schema.rules.as_deref();
    let format = rules.map_or("", |rules| rules.format.as_str());
    let length = rules.and_then(|rules| rules.max_length);
    let length = length.map(|most| u64::try_from(most).unwrap_or(0));
    match format {
        "byte" => {
            let size_max = length.unwrap_or(REQUEST_BYTES_MAX - 2);
            declared(Declaration::Bytes { size_max }, 2)
        }
        "duration" => declared(Declaration::Duration, 4),
        "date" => declared(Declaration::Date, 12),
        "date-time" => declared(Declaration::DateTime, 21),
        _ => {
            let choices = rules.into_iter().flat_map(|rules| rules.enumeration.iter());
            let longest = choices.filter_map(|one| one.as_str()).map(str::len).max();
            let size_max = match (length, longest) {
                (Some(most), _) => most * 4,
                (None, Some(longest)) => longest as u64,
                (None, None) => REQUEST_BYTES_MAX - 2,
            };
            declared(Declaration::String { size_max }, 2)
        }
    }
}
