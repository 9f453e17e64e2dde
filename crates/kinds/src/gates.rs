//! Fields of features that are off by default. They are dropped from writes, unless the feature is
//! on or the stored object uses them (upstream: `dropDisabledFields`).

use pintle_value::Value;

use crate::features::{Feature, Features};

/// The fields of one gate.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The feature that enables the fields; `None` if Pintle cannot enable it.
    pub feature: Option<Feature>,
    /// Paths of members; `*` stands for every item of a list.
    pub fields: &'static [&'static [&'static str]],
}

/// The fields of a gate that is always off.
pub(crate) const fn off(fields: &'static [&'static [&'static str]]) -> Gate {
    Gate { feature: None, fields }
}

/// The fields of a feature.
pub(crate) const fn of(feature: Feature, fields: &'static [&'static [&'static str]]) -> Gate {
    Gate { feature: Some(feature), fields }
}

/// Gates, and the path to which the paths of their fields are relative.
pub(crate) type Gated = (&'static [&'static str], &'static [Gate]);

/// Drops the fields of disabled features.
pub(crate) fn drop(new: &mut Value, old: Option<&Value>, gated: &[Gated], on: Features) {
    for (field, gates) in gated {
        let old = old.and_then(|old| old.at(field));
        let Some(new) = field.iter().try_fold(&mut *new, |node, member| node.get_mut(member))
        else {
            continue;
        };
        for gate in gates.iter().filter(|gate| !gate.feature.is_some_and(|it| on.has(it))) {
            let is_in_use = |old: &Value| gate.fields.iter().any(|path| has(old, path));
            if !old.is_some_and(is_in_use) {
                gate.fields.iter().for_each(|path| _ = remove(new, path));
            }
        }
    }
}

fn has(value: &Value, path: &[&str]) -> bool {
    match path {
        [] => !value.is_null(),
        ["*", rest @ ..] => value.as_array().unwrap_or_default().iter().any(|item| has(item, rest)),
        [member, rest @ ..] => value.get(member).is_some_and(|value| has(value, rest)),
    }
}

/// Removes a field, and each parent object that is then empty. Returns whether nothing is left.
fn remove(value: &mut Value, path: &[&str]) -> bool {
    match (path, value) {
        ([], _) => true,
        (["*", rest @ ..], Value::Array(items)) => {
            items.iter_mut().for_each(|item| _ = remove(item, rest));
            false
        }
        ([member, rest @ ..], Value::Object(members)) => {
            let is_empty = members.get_mut(member).is_some_and(|value| remove(value, rest));
            if is_empty {
                members.remove(member);
            }
            is_empty && members.is_empty()
        }
        _ => false,
    }
}
