//! Values from which expressions construct patches: objects whose type names their position
//! (`Object.spec`), and operations of a JSON patch.
//!
//! Upstream has no schema here: an object may have any field, and the positions of types are
//! checked when the whole object is complete.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_value::{Map as Tree, Value};

use super::{Val, to_json};
use crate::context::Context;
use crate::error::EvalError;
use crate::types::Type;

const OBJECT: &str = "Object";
const PATCH: &str = "JSONPatch";

/// A constructed value.
#[derive(Clone, Debug)]
pub(crate) struct Made<'a> {
    pub(crate) type_name: Arc<str>,
    pub(crate) fields: BTreeMap<Arc<str>, Val<'a>>,
}

/// Whether values of a type can be constructed.
pub(crate) fn is_type(name: &str) -> bool {
    matches!(name, OBJECT | PATCH) || name.starts_with("Object.")
}

/// The common name of all types of a kind, for errors without a value.
pub(crate) fn kind(name: &str) -> &'static str {
    if name == PATCH { PATCH } else { OBJECT }
}

/// The type of a field; `None` if there is no such field.
pub(crate) fn field_type(made: &str, field: &str) -> Option<Type> {
    match (made, field) {
        (PATCH, "op" | "path" | "from") => Some(Type::String),
        (PATCH, "value") => Some(Type::Dyn),
        (PATCH, _) => None,
        _ => Some(Type::Dyn),
    }
}

impl<'a> Made<'a> {
    /// Creates a value with these fields, if their types match.
    pub(crate) fn new(
        type_name: Arc<str>,
        fields: BTreeMap<Arc<str>, Val<'a>>,
    ) -> Result<Self, EvalError> {
        for (name, value) in &fields {
            let is_text = field_type(&type_name, name) == Some(Type::String);
            if is_text && !matches!(value, Val::String(_)) {
                let found = value.type_name();
                let message = format!("unexpected type {found} for JSONPatchType '{name}' field");
                return Err(EvalError::new(message));
            }
        }
        Ok(Self { type_name, fields })
    }

    /// A field. Only the fields of a JSON patch can be read. A text field that is not set is empty;
    /// it is absent only where absence is allowed, as in a presence test.
    pub(crate) fn get(&self, key: &Val<'a>, may_be_absent: bool) -> Option<Val<'a>> {
        let Val::String(name) = key else { return None };
        if kind(&self.type_name) == OBJECT {
            return None;
        }
        match self.fields.get(&**name) {
            Some(Val::String(text)) if text.is_empty() && may_be_absent => None,
            Some(value) => Some(value.clone()),
            None if may_be_absent || &**name == "value" => None,
            None => Some(Val::string("")),
        }
    }

    /// Converts to data. Nested objects must have the types of their positions.
    pub(crate) fn to_json(&self, context: &mut Context) -> Result<Value, EvalError> {
        let mut wrong = Vec::new();
        if self.type_name.as_ref() != PATCH {
            check(self, &self.type_name, &mut wrong, context)?;
        }
        if !wrong.is_empty() {
            return Err(EvalError::misplaced(format!("type mismatch: {}", wrong.join("\n"))));
        }
        self.members(context)
    }

    fn members(&self, context: &mut Context) -> Result<Value, EvalError> {
        let mut members = Tree::new();
        for (name, value) in &self.fields {
            members.insert(&**name, to_json(value, context)?);
        }
        Ok(Value::Object(members))
    }
}

/// Compares the types of all objects with their paths. Lists and maps do not add to a path.
/// Visiting values counts as work: they can share parts, which are visited each time.
fn check(
    made: &Made<'_>,
    path: &str,
    wrong: &mut Vec<String>,
    context: &mut Context,
) -> Result<(), EvalError> {
    if &*made.type_name != path {
        context.work((path.len() + made.type_name.len()) as u64)?;
        wrong.push(format!(
            "unexpected type name {:?}, expected {path:?}, which matches field name path from root \
             Object type",
            made.type_name
        ));
    }
    for (name, value) in &made.fields {
        context.work((path.len() + name.len()) as u64)?;
        check_in(value, &format!("{path}.{name}"), wrong, context)?;
    }
    Ok(())
}

fn check_in(
    value: &Val<'_>,
    path: &str,
    wrong: &mut Vec<String>,
    context: &mut Context,
) -> Result<(), EvalError> {
    context.visit()?;
    match value {
        Val::Made(made) => check(made, path, wrong, context),
        Val::List(list) if !list.is_of_data() => list
            .iter()
            .filter_map(Result::ok)
            .try_for_each(|item| check_in(&item, path, wrong, context)),
        Val::Map(super::Map::Owned(entries)) => {
            entries.values().try_for_each(|value| check_in(value, path, wrong, context))
        }
        _ => Ok(()),
    }
}
