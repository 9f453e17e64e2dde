//! Fields that a feature gate switches off in v1.36: what clients say of them is dropped, unless the object
//! that they replace uses them (upstream: `dropDisabledFields`).

use pintle_value::Value;

/// The fields of one gate, as paths of members; `*` stands for every item of a list.
pub(crate) type Gate = &'static [&'static [&'static str]];

/// Gates, and what the paths of their fields are relative to.
pub(crate) type Gated = (&'static [&'static str], &'static [Gate]);

/// Drops what is switched off.
pub(crate) fn drop(new: &mut Value, old: Option<&Value>, gated: &[Gated]) {
    for (place, gates) in gated {
        let old = old.and_then(|old| old.at(place));
        let Some(new) = place.iter().try_fold(&mut *new, |node, member| node.get_mut(member))
        else {
            continue;
        };
        for gate in *gates {
            let is_in_use = |old: &Value| gate.iter().any(|path| has(old, path));
            if !old.is_some_and(is_in_use) {
                gate.iter().for_each(|path| _ = remove(new, path));
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

/// Removes a field, and an object in which nothing else was said; tells whether nothing is left.
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
