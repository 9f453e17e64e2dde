//! JSON patch (RFC 6902), as upstream's library applies it.
//!
//! It is laxer than the RFC: negative indices count from a list's end, `replace` of a missing
//! member adds it, `copy` of a missing member yields null, and the text before a path's first slash
//! is ignored.

mod operation;
mod pointer;

use pintle_meta::quote::quote;
use pintle_value::{DEPTH_MAX, Value, json};

use crate::{Error, Patched, lazy};
use operation::Operation;
use pointer::{container, depth, extent, index, segments};

/// The maximum number of operations in a patch.
pub(crate) const OPERATIONS_MAX: usize = 10_000;
/// The maximum number of bytes of JSON that the `copy` operations of a patch may add.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;
/// The maximum number of items and members that a patch may shift by insertions and removals. The
/// limit allows everything that upstream allows for objects of the usual size, and bounds the time
/// for the largest objects to a fraction of a second.
const SHIFTED_MAX: usize = 1 << 26;

const MISSING: &str = "missing value";

pub(crate) fn apply(current: &Value, patch: &[u8]) -> Result<Patched, Error> {
    let (operations, problems) = operation::read(patch)?;
    if operations.len() > OPERATIONS_MAX {
        return Err(Error::TooManyOperations { found: operations.len(), max: OPERATIONS_MAX });
    }
    let mut value = current.clone();
    if operations.iter().any(Operation::may_touch_managed_fields) {
        json::parse_raw(&mut value);
    }
    let value = applied(value, operations).map_err(Error::DoesNotApply)?;
    let problems = problems.iter().map(|problem| format!("json patch {problem}")).collect();
    Ok(Patched { value, problems })
}

/// Returns the result with each value as the text that it was, unless an operation looked into it:
/// then its members are sorted.
pub(crate) fn shown(current: Value, patch: &[u8]) -> Option<Value> {
    let (mut operations, _) = operation::read(patch).ok()?;
    let mut items = lazy::raw(patch);
    lazy::open(&mut items);
    for (operation, item) in operations.iter_mut().zip(items.as_array_mut()?) {
        lazy::open(item);
        operation.value = item.get("value").cloned();
    }
    applied(current, operations).ok()
}

fn applied(value: Value, operations: Vec<Operation>) -> Result<Value, String> {
    let mut document = Document { depth: depth(&value), value, copied_bytes: 0, shifted: 0 };
    lazy::open(&mut document.value);
    operations.into_iter().try_for_each(|operation| document.apply(operation))?;
    Ok(document.value)
}

struct Document {
    value: Value,
    /// An upper bound of the value's nesting depth.
    depth: usize,
    /// The bytes that `copy` operations have added so far.
    copied_bytes: usize,
    /// The number of items and members shifted so far.
    shifted: usize,
}

impl Document {
    fn apply(&mut self, operation: Operation) -> Result<(), String> {
        match operation.op.as_str() {
            "add" => self.add(operation),
            "remove" => self.remove(&operation),
            "replace" => self.replace(operation),
            "move" => self.move_value(&operation),
            "copy" => self.copy(&operation),
            "test" => self.test(operation),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&mut self, operation: Operation) -> Result<(), String> {
        let path = operation.path.as_deref();
        let path = path.ok_or(format!("add operation failed to decode path: {MISSING}"))?;
        let value = operation.value.unwrap_or_default();
        let depth = depth(&value);
        let Some((container, key)) = container(&mut self.value, path) else {
            let doc = "add operation does not apply: doc is missing path";
            return Err(format!("{doc}: \"{path}\": {MISSING}"));
        };
        add(container, &key, value, &mut self.shifted)
            .map_err(|e| format!("error in add for path: '{path}': {e}"))?;
        self.check_depth(segments(path) + depth)
    }

    fn remove(&mut self, operation: &Operation) -> Result<(), String> {
        let path = operation.path.as_deref();
        let path = path.ok_or(format!("remove operation failed to decode path: {MISSING}"))?;
        let Some((container, key)) = container(&mut self.value, path) else {
            let doc = "remove operation does not apply: doc is missing path";
            return Err(format!("{doc}: \"{path}\": {MISSING}"));
        };
        remove(container, &key, &mut self.shifted)
            .map_err(|e| format!("error in remove for path: '{path}': {e}"))?;
        Ok(())
    }

    fn replace(&mut self, operation: Operation) -> Result<(), String> {
        let path = operation.path()?;
        let mut value = operation.value.clone().unwrap_or_default();
        if path.is_empty() {
            lazy::open(&mut value);
            if !matches!(value, Value::Object(_) | Value::Array(_)) {
                return Err(
                    "replace operation value must be object or array: %!w(<nil>)".to_owned()
                );
            }
            self.depth = depth(&value);
            self.value = value;
            return Ok(());
        }
        let depth = depth(&value);
        let Some((container, key)) = container(&mut self.value, path) else {
            let doc = "replace operation does not apply: doc is missing path";
            return Err(format!("{doc}: {path}: {MISSING}"));
        };
        match container {
            Value::Array(items) => match index(&key, items.len()) {
                Ok(i) => items[i] = value,
                Err(_) => {
                    let doc = "replace operation does not apply: doc is missing key";
                    return Err(format!("{doc}: {path}: {MISSING}"));
                }
            },
            other => {
                let members = other.make_object();
                count_shifted(members.len(), &mut self.shifted)?;
                members.insert(key, value);
            }
        }
        self.check_depth(segments(path) + depth)
    }

    fn move_value(&mut self, operation: &Operation) -> Result<(), String> {
        let from = operation.from()?;
        let Some((source, key)) = container(&mut self.value, from) else {
            let doc = "move operation does not apply: doc is missing from path";
            return Err(format!("{doc}: {from}: {MISSING}"));
        };
        let value = remove(source, &key, &mut self.shifted)
            .map_err(|e| format!("error in move for path: '{key}': {e}"))?;
        let path = operation.path()?;
        let Some((target, key)) = container(&mut self.value, path) else {
            let doc = "move operation does not apply: doc is missing destination path";
            return Err(format!("{doc}: {path}: {MISSING}"));
        };
        add(target, &key, value, &mut self.shifted)
            .map_err(|e| format!("error in move for path: '{path}': {e}"))?;
        self.check_depth((self.depth + segments(path)).saturating_sub(segments(from)))
    }

    fn copy(&mut self, operation: &Operation) -> Result<(), String> {
        let from = operation.from()?;
        let Some((source, key)) = container(&mut self.value, from) else {
            let doc = "copy operation does not apply: doc is missing from path";
            return Err(format!("{doc}: {from}: {MISSING}"));
        };
        let value =
            get_mut(source, &key).map_err(|e| format!("error in copy for from: '{from}': {e}"))?;
        let value = value.cloned();
        let path = operation.path.as_deref();
        let path = path.ok_or(format!("copy operation failed to decode path: {MISSING}"))?;
        let Some((target, key)) = container(&mut self.value, path) else {
            let doc = "copy operation does not apply: doc is missing destination path";
            return Err(format!("{doc}: {path}: {MISSING}"));
        };
        self.copied_bytes += value.as_ref().map_or(0, |value| json::to_string(value).len());
        if self.copied_bytes > COPIED_BYTES_MAX {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, \
                 exceeding the limit {COPIED_BYTES_MAX}",
                self.copied_bytes
            ));
        }
        let value = value.unwrap_or_default();
        let depth = depth(&value);
        add(target, &key, value, &mut self.shifted)
            .map_err(|e| format!("error while adding value during copy: {e}"))?;
        self.check_depth(segments(path) + depth)
    }

    fn test(&mut self, mut operation: Operation) -> Result<(), String> {
        operation.value.iter_mut().for_each(json::parse_raw);
        let path = operation.path()?;
        let failed = || Err(format!("testing value {path} failed: test failed"));
        if path.is_empty() {
            json::parse_raw(&mut self.value);
            let same = operation.value.as_ref() == Some(&self.value);
            return if same { Ok(()) } else { failed() };
        }
        let Some((container, key)) = container(&mut self.value, path) else {
            let doc = "test operation does not apply: is missing path";
            return Err(format!("{doc}: {path}: {MISSING}"));
        };
        let found = get_mut(container, &key);
        let found = found.map_err(|e| format!("error in test for path: '{path}': {e}"))?;
        let found = found.map(|value| {
            json::parse_raw(value);
            &*value
        });
        // A missing value, in the document or in the operation, equals null.
        let same =
            found.unwrap_or(&Value::Null) == operation.value.as_ref().unwrap_or(&Value::Null);
        if same { Ok(()) } else { failed() }
    }

    /// Records that the value may now be `depth_now` deep. Computes the real depth only when this
    /// bound exceeds the limit. That takes as long as to shift every value, and is counted so.
    fn check_depth(&mut self, depth_now: usize) -> Result<(), String> {
        self.depth = self.depth.max(depth_now);
        if self.depth > DEPTH_MAX {
            let (depth, count) = extent(&self.value);
            self.depth = depth;
            count_shifted(count, &mut self.shifted)?;
        }
        if self.depth > DEPTH_MAX { Err("exceeded max depth".to_owned()) } else { Ok(()) }
    }
}

/// Returns the member or item; `None` if an object lacks the member.
fn get_mut<'a>(container: &'a mut Value, key: &str) -> Result<Option<&'a mut Value>, String> {
    match container {
        Value::Array(items) => {
            let i = index(key, items.len())?;
            Ok(items.get_mut(i))
        }
        other => Ok(other.get_mut(key)),
    }
}

fn add(container: &mut Value, key: &str, value: Value, shifted: &mut usize) -> Result<(), String> {
    match container {
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            pointer::number(key)
                .map_err(|e| format!("value was not a proper array index: '{key}': {e}"))?;
            // An insertion index may be one past the last item.
            let i = index(key, items.len() + 1)?;
            count_shifted(items.len() - i, shifted)?;
            items.insert(i, value);
        }
        other => {
            let members = other.make_object();
            count_shifted(members.len(), shifted)?;
            members.insert(key, value);
        }
    }
    Ok(())
}

fn remove(container: &mut Value, key: &str, shifted: &mut usize) -> Result<Value, String> {
    match container {
        Value::Array(items) => {
            let i = index(key, items.len())?;
            count_shifted(items.len() - i, shifted)?;
            Ok(items.remove(i))
        }
        other => {
            let missing = || format!("Unable to remove nonexistent key: {key}: {MISSING}");
            let members = other.make_object();
            count_shifted(members.len(), shifted)?;
            members.remove(key).ok_or_else(missing)
        }
    }
}

/// Counts shifted items and members, and rejects the patch above the limit.
fn count_shifted(count: usize, shifted: &mut usize) -> Result<(), String> {
    *shifted += count;
    if *shifted > SHIFTED_MAX {
        return Err(format!(
            "Unable to apply the patch, its operations move more than {SHIFTED_MAX} items of lists \
             and members of objects"
        ));
    }
    Ok(())
}
