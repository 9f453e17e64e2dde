//! Lists whose items have an identity: uniqueness of items, and the correlation of items of two
//! states of a list by their keys.

use std::collections::{HashMap, HashSet};

use pintle_meta::field::{Error, Errors};
use pintle_value::{Map, Path, Str, Value, json};

use crate::structural::{List, Structural};

/// Reports duplicate items in lists that are sets or maps (upstream: `schema/listtype`).
pub(crate) fn duplicates(schema: &Structural, value: &Value) -> Errors {
    let mut errors = Errors::new();
    walk(schema, value, &mut Path::root(), &mut errors);
    errors
}

fn walk(schema: &Structural, value: &Value, path: &mut Path, errors: &mut Errors) {
    if errors.is_full() {
        return;
    }
    if let Value::Array(items) = value {
        match &schema.list {
            List::Atomic => {}
            List::Set => {
                let repeated = repeated(items.iter().map(json::to_string));
                errors.extend(repeated.map(|i| Error::duplicate(&path.index(i), &items[i])));
            }
            List::Map(keys) => check_map(keys, items, path, errors),
        }
    }
    schema.each_part(value, path, |schema, part, path| walk(schema, part, path, errors));
}

fn check_map(keys: &[Str], items: &[Value], path: &Path, errors: &mut Errors) {
    let is_wrong = |item: &&Value| !matches!(item, Value::Object(_) | Value::Null);
    if let Some((i, item)) = items.iter().enumerate().find(|(_, item)| is_wrong(item)) {
        let words = "must be an object for an array of list-type map";
        errors.push(Error::invalid(&path.index(i), item, words));
        return;
    }
    let key_values: Vec<Value> = items.iter().map(|item| key_of(keys, item)).collect();
    let repeated = repeated(key_values.iter().map(json::to_string));
    errors.extend(repeated.map(|i| Error::duplicate(&path.index(i), &key_values[i])));
}

/// The key members of an item.
fn key_of(keys: &[Str], item: &Value) -> Value {
    let members = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(members.collect::<Map>())
}

/// The index of the first repetition of each text.
fn repeated(texts: impl Iterator<Item = String>) -> impl Iterator<Item = usize> {
    let mut seen = HashMap::<String, usize>::new();
    let mut reported = HashSet::new();
    let found: Vec<usize> = texts
        .enumerate()
        .filter_map(|(i, text)| match seen.entry(text) {
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(i);
                None
            }
            std::collections::hash_map::Entry::Occupied(first) => {
                reported.insert(*first.get()).then_some(i)
            }
        })
        .collect();
    found.into_iter()
}

/// The old items of a list of the type map, by key. The items of other lists cannot be correlated.
pub(crate) struct Correlated<'v> {
    keys: &'v [Str],
    items: HashMap<String, &'v Value>,
}

impl<'v> Correlated<'v> {
    pub(crate) fn new(schema: &'v Structural, old: Option<&'v Value>) -> Self {
        let (List::Map(keys), Some(items)) = (&schema.list, old.and_then(Value::as_array)) else {
            return Self { keys: &[], items: HashMap::new() };
        };
        let entry = |item: &'v Value| (json::to_string(&key_of(keys, item)), item);
        Self { keys, items: items.iter().map(entry).collect() }
    }

    /// The old state of an item.
    pub(crate) fn item(&self, item: &Value) -> Option<&'v Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&json::to_string(&key_of(self.keys, item))).copied()
    }
}

/// Whether a value is unchanged. The order of a list's items only matters if they have no keys
/// (upstream: `CorrelatedObject.CachedDeepEqual`).
pub(crate) fn is_same(schema: &Structural, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(items), Value::Array(olds)) => {
            let (List::Map(_), Some(below)) = (&schema.list, &schema.items) else {
                return items == olds;
            };
            let correlated = Correlated::new(schema, Some(old));
            // There are as many distinct keys as items, so none can be missing.
            items.len() == olds.len()
                && correlated.items.len() == olds.len()
                && Correlated::new(schema, Some(new)).items.len() == items.len()
                && items
                    .iter()
                    .all(|item| correlated.item(item).is_some_and(|old| is_same(below, item, old)))
        }
        (Value::Object(members), Value::Object(olds)) => {
            members.len() == olds.len()
                && members.iter().all(|(name, member)| {
                    let Some(old) = olds.get(name) else { return false };
                    let below = schema.member(name);
                    // An undeclared field counts as changed, because it cannot be correlated.
                    below.is_some_and(|below| is_same(below, member, old))
                })
        }
        (new, old) => new == old,
    }
}
