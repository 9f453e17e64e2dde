//! The operations of a JSON patch.

use pintle_schema::Problem;
use pintle_value::{Map, Str, Value};

use super::MISSING;
use crate::{
    Error,
    read::{push, read as read_value},
};

/// One operation of a patch.
pub(super) struct Operation {
    /// `add`, `remove`, `replace`, `move`, `copy`, `test`, or an invalid text.
    pub op: Str,
    pub path: Option<Str>,
    pub from: Option<Str>,
    pub value: Option<Value>,
}

impl Operation {
    pub(super) fn path(&self) -> Result<&str, String> {
        self.path.as_deref().ok_or_else(|| {
            let op = &self.op;
            format!("{op} operation failed to decode path: operation missing path field: {MISSING}")
        })
    }

    /// Whether the operation may touch `managedFields`, whose raw JSON must then be parsed first.
    pub(super) fn may_touch_managed_fields(&self) -> bool {
        let names = |path: &Str| {
            path.is_empty() || path.ends_with("/metadata") || path.contains("/managedFields")
        };
        self.path.iter().chain(&self.from).any(names)
    }

    pub(super) fn from(&self) -> Result<&str, String> {
        self.from.as_deref().ok_or_else(|| {
            let op = &self.op;
            format!(
                "{op} operation failed to decode from: operation, missing from field: {MISSING}"
            )
        })
    }
}

/// Parses a patch. The second result lists unknown and duplicate members.
pub(super) fn read(patch: &[u8]) -> Result<(Vec<Operation>, Vec<Problem>), Error> {
    let malformed = |why: String| Error::Malformed(format!("error decoding patch: {why}"));
    let (patch, duplicates) = read_value(patch).map_err(|e| malformed(e.to_string()))?;
    let items = match patch {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => return Err(malformed(mismatch(&other, "value of type []handlers.jsonPatchOp"))),
    };
    let mut problems = Vec::new();
    let mut operations = Vec::with_capacity(items.len());
    for (i, item) in items.into_iter().enumerate() {
        operations.push(operation(item, i, &mut problems).map_err(malformed)?);
    }
    for problem in duplicates {
        let (Problem::Duplicate(path) | Problem::Unknown(path) | Problem::Repeated(path)) =
            &problem;
        // Duplicates inside an unknown member are not reported.
        let unknown = problems.iter().any(|p| {
            matches!(p, Problem::Unknown(outer)
            if path.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with(['.', '['])))
        });
        if !unknown {
            push(&mut problems, problem);
        }
    }
    Ok((operations, problems))
}

fn operation(item: Value, i: usize, problems: &mut Vec<Problem>) -> Result<Operation, String> {
    let mut members = match item {
        Value::Object(members) => members,
        Value::Null => Map::new(),
        other => return Err(mismatch(&other, "value of type handlers.jsonPatchOp")),
    };
    let mut text = |name: &str| match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(mismatch(&other, &format!("struct field jsonPatchOp.{name} of type string")))
        }
    };
    let (op, path, from) = (text("op")?, text("path")?, text("from")?);
    let value = members.remove("value");
    for (unknown, _) in members {
        push(problems, Problem::Unknown(format!("[{i}].{unknown}")));
    }
    Ok(Operation { op: op.unwrap_or(Str::const_new("unknown")), path, from, value })
}

/// The error text of Go's decoder for JSON of the wrong type.
fn mismatch(found: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go {wanted}", found.type_name())
}
