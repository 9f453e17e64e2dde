//! Strict validation of configuration files: unknown members and wrong types are errors (upstream:
//! strict decoding).

use pintle_value::{Map, Value};

/// The members of a format: their paths, in which `[]` stands for any index, and their types.
/// Every format has `apiVersion` and `kind`.
pub(crate) type Format = &'static [(&'static str, MemberType)];

/// The type of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberType {
    Text,
    Texts,
    Object,
    Objects,
    /// A member that its reader checks.
    Other,
}

/// Returns an error that lists all unknown members in upstream's words, or describes the first
/// member with a wrong type.
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
        let Some((_, member_type)) = format.iter().find(|(known, _)| *known == in_format) else {
            unknown.push(path);
            continue;
        };
        check_member(value, *member_type, [&in_format, &path], format, unknown)?;
    }
    Ok(())
}

fn check_member(
    value: &Value,
    member_type: MemberType,
    [in_format, path]: [&str; 2],
    format: Format,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let must_be = |what: &str| Err(format!("{path}: must be {what}"));
    match (member_type, value) {
        (MemberType::Other, _) => Ok(()),
        (MemberType::Text, _) if value.as_str().is_some() => Ok(()),
        (MemberType::Text, _) => must_be("a string"),
        (MemberType::Object, Value::Object(_)) => {
            check_members(value, [in_format, path], format, unknown)
        }
        (MemberType::Object, _) => must_be("an object"),
        (MemberType::Texts, Value::Array(items))
            if items.iter().all(|item| item.as_str().is_some()) =>
        {
            Ok(())
        }
        (MemberType::Texts, _) => must_be("a list of strings"),
        (MemberType::Objects, Value::Array(items)) => {
            items.iter().enumerate().try_for_each(|(index, item)| {
                let paths = [format!("{in_format}[]"), format!("{path}[{index}]")];
                let [in_format, path] = [paths[0].as_str(), paths[1].as_str()];
                check_member(item, MemberType::Object, [in_format, path], format, unknown)
            })
        }
        (MemberType::Objects, _) => must_be("a list of objects"),
    }
}
