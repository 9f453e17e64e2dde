//! Configurations have no members that their formats do not have (upstream: strict decoding).

use pintle_value::{Map, Value};

/// The members of a format: the path of each, in which `[]` stands for the index of any item, and what it is.
/// `apiVersion` and `kind` belong to all formats.
pub(crate) type Format = &'static [(&'static str, Is)];

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    Text,
    Texts,
    Object,
    Objects,
    /// Somebody else reads it.
    Other,
}

/// Checks a configuration against its format.
///
/// # Errors
/// All unknown members, in upstream's words; or the first member that is something else than the format says.
pub(crate) fn check(configuration: &Value, format: Format) -> Result<(), String> {
    let mut unknown = Vec::new();
    check_members(configuration, ["", ""], format, &mut unknown)?;
    if unknown.is_empty() {
        return Ok(());
    }
    let unknown: Vec<String> =
        unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    Err(format!("strict decoding error: {}", unknown.join(", ")))
}

/// Checks the members of an object at a path of the format and of the configuration.
fn check_members(
    object: &Value,
    [in_format, path]: [&str; 2],
    format: Format,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    for (name, value) in object.as_object().into_iter().flat_map(Map::iter) {
        let join = |path: &str| match path {
            "" => name.to_string(),
            path => format!("{path}.{name}"),
        };
        let (in_format, path) = (join(in_format), join(path));
        if matches!(in_format.as_str(), "apiVersion" | "kind") || value.is_null() {
            continue;
        }
        let Some((_, is)) = format.iter().find(|(known, _)| *known == in_format) else {
            unknown.push(path);
            continue;
        };
        check_member(value, *is, [&in_format, &path], format, unknown)?;
    }
    Ok(())
}

fn check_member(
    value: &Value,
    is: Is,
    [in_format, path]: [&str; 2],
    format: Format,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let must_be = |what: &str| Err(format!("{path}: must be {what}"));
    match (is, value) {
        (Is::Other, _) => Ok(()),
        (Is::Text, _) if value.as_str().is_some() => Ok(()),
        (Is::Text, _) => must_be("a string"),
        (Is::Object, Value::Object(_)) => check_members(value, [in_format, path], format, unknown),
        (Is::Object, _) => must_be("an object"),
        (Is::Texts, Value::Array(items)) if items.iter().all(|item| item.as_str().is_some()) => {
            Ok(())
        }
        (Is::Texts, _) => must_be("a list of strings"),
        (Is::Objects, Value::Array(items)) => {
            items.iter().enumerate().try_for_each(|(index, item)| {
                let paths = [format!("{in_format}[]"), format!("{path}[{index}]")];
                let [in_format, path] = [paths[0].as_str(), paths[1].as_str()];
                check_member(item, Is::Object, [in_format, path], format, unknown)
            })
        }
        (Is::Objects, _) => must_be("a list of objects"),
    }
}
