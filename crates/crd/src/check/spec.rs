//! Validation of the spec of a definition: names, versions, and the parts of each version.

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::field::{Error, Errors};
use pintle_meta::names::{dns1035_label, dns1123_subdomain};
use pintle_value::{Path, Str, Value, order::Ordered};

use super::strictness::{Sent, Strictness, has_defaults};
use super::{conversion, openapi, per_version};
use crate::definition::{Crd, Version};
use crate::structural::{Structural, Type};

const SELECTABLE_FIELDS_MAX: usize = 8;

pub(super) fn validate(sent: Sent, crd: Crd<'_>, old: Option<Crd<'_>>) -> Errors {
    let spec = Path::new("spec");
    let strictness = Strictness::of(sent, crd, old);
    let mut errors = Errors::new();
    check_group(crd.group(), &spec.field("group"), &mut errors);
    let scope = crd.0.str_at(&["spec", "scope"]).unwrap_or_default();
    let path = spec.field("scope");
    if scope.is_empty() {
        errors.push(Error::required(&path, ""));
    } else if !matches!(scope, "Cluster" | "Namespaced") {
        errors.push(Error::not_supported(&path, &scope.into(), &["Cluster", "Namespaced"]));
    }
    check_unknown_fields(crd, strictness, &spec, &mut errors);
    check_versions(crd, strictness, &spec, &mut errors);
    let names = crd.0.at(&["spec", "names"]).unwrap_or(&Value::Null);
    let path = Path::new("spec").field("names");
    let missing = ["plural", "singular", "kind", "listKind"].into_iter();
    let missing = missing.filter(|key| names.str_at(&[key]).unwrap_or_default().is_empty());
    errors.extend(missing.map(|key| Error::required(&path.field(key), "")));
    check_names(names, &path, &mut errors);
    Parts { crd, old, spec: &spec, strictness }.check(&mut errors);
    let conversion = crd.0.at(&["spec", "conversion"]);
    let strategy = conversion.and_then(|conversion| conversion.get("strategy"));
    if let Some(strategy) =
        strategy.filter(|s| s.as_str() != Some("None") && crd.preserves_unknown())
    {
        let path = spec.field("conversion").field("strategy");
        let words = "must be None if spec.preserveUnknownFields is true";
        errors.push(Error::invalid(&path, strategy, words));
    }
    errors.extend(conversion::validate(conversion, old, &spec.field("conversion")));
    if let Some(old) = old {
        let mut frozen = vec![&["spec", "group"][..], &["spec", "names", "plural"]];
        if old.has("Established") {
            frozen.splice(0..0, [&["spec", "scope"][..], &["spec", "names", "kind"]]);
        }
        for member in frozen {
            let (new, old) = (crd.0.at(member), old.0.at(member));
            if new != old {
                let mut path = Path::root();
                member.iter().for_each(|name| path.push_field(name));
                let words = "field is immutable";
                errors.push(Error::invalid(&path, new.unwrap_or(&Value::Null), words));
            }
        }
    }
    errors
}

fn check_group(group: &str, path: &Path, errors: &mut Errors) {
    if group.is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    let wrong = dns1123_subdomain(group);
    if !wrong.is_empty() {
        errors.push(Error::invalid(path, &group.into(), wrong.join(",")));
    } else if !group.contains('.') {
        let words = "should be a domain with at least one dot";
        errors.push(Error::invalid(path, &group.into(), words));
    }
}

/// Refuses defaults in a definition that preserves unknown fields.
fn check_unknown_fields(crd: Crd<'_>, strictness: Strictness, spec: &Path, errors: &mut Errors) {
    if strictness.no_defaults.is_none() && crd.preserves_unknown() && has_defaults(crd) {
        let words = "must be false in order to use defaults in the schema";
        let path = spec.field("preserveUnknownFields");
        errors.push(Error::invalid(&path, &Value::Bool(true), words));
    }
}

fn check_versions(crd: Crd<'_>, strictness: Strictness, spec: &Path, errors: &mut Errors) {
    let path = spec.field("versions");
    for (i, version) in crd.versions().enumerate() {
        let words = match strictness.schemas {
            true => Some(""),
            false if crd.preserves_unknown() || !version.is_served() => None,
            false => Some("because otherwise all fields are pruned"),
        };
        if let Some(words) = words.filter(|_| version.schema().is_none()) {
            let path = path.index(i).field("schema").field("openAPIV3Schema");
            errors.push(Error::required(&path, words));
        }
    }
    for (i, version) in crd.versions().enumerate() {
        let wrong = dns1035_label(version.name());
        if !wrong.is_empty() {
            let path = path.index(i).field("name");
            errors.push(Error::invalid(&path, &version.name().into(), wrong.join(",")));
        }
        let warning = version.0.get("deprecationWarning").filter(|warning| !warning.is_null());
        if let Some(warning) = warning {
            let path = path.index(i).field("deprecationWarning");
            let wrong = wrong_warning(version.is_deprecated(), warning);
            errors.extend(wrong.into_iter().map(|words| Error::invalid(&path, warning, words)));
        }
    }
    let shown = || crd.0.at(&["spec", "versions"]).unwrap_or(&Value::Null);
    errors.extend(per_version::validate(crd, spec));
    let mut names = BTreeSet::new();
    if !crd.versions().all(|version| names.insert(version.name())) {
        errors.push(Error::invalid(&path, shown(), "must contain unique version names"));
    }
    if crd.versions().filter(|version| version.is_storage()).count() != 1 {
        let words = "must have exactly one version marked as storage version";
        errors.push(Error::invalid(&path, shown(), words));
    }
    // Upstream's internal version also has the first version's name at the top.
    let first = crd.versions().next().map(|version| version.name()).unwrap_or_default();
    let wrong = dns1035_label(first);
    if !first.is_empty() && !wrong.is_empty() {
        errors.push(Error::invalid(&spec.field("version"), &first.into(), wrong.join(",")));
    }
}

fn wrong_warning(is_deprecated: bool, warning: &Value) -> Vec<String> {
    if !is_deprecated {
        return vec!["can only be set for deprecated versions".to_owned()];
    }
    let text = warning.as_str().unwrap_or_default();
    let mut wrong = Vec::new();
    if text.len() > 256 {
        wrong.push("must be <= 256 characters long".to_owned());
    }
    if text.is_empty() {
        wrong.push("must not be an empty string".to_owned());
    }
    let odd = text.char_indices().find(|(_, c)| !pintle_meta::quote::is_print(*c));
    if let Some((at, _)) = odd {
        wrong.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
    wrong
}

/// Validates names that are wanted or accepted.
pub(super) fn check_names(names: &Value, path: &Path, errors: &mut Errors) {
    let text = |key: &str| names.str_at(&[key]).unwrap_or_default();
    let mut check = |path: Path, name: &str, is_kind: bool| {
        let lower = name.to_lowercase();
        let wrong = dns1035_label(if is_kind { &lower } else { name });
        let is_listed = path.as_str().ends_with(']');
        if name.is_empty() && !is_listed || wrong.is_empty() {
            return;
        }
        let head = if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
        errors.push(Error::invalid(&path, &name.into(), format!("{head}{}", wrong.join(","))));
    };
    for (key, is_kind) in
        [("plural", false), ("singular", false), ("kind", true), ("listKind", true)]
    {
        check(path.field(key), text(key), is_kind);
    }
    for key in ["shortNames", "categories"] {
        let list = names.get(key).and_then(Value::as_array).unwrap_or_default();
        for (i, name) in list.iter().enumerate() {
            check(path.field(key).index(i), name.as_str().unwrap_or_default(), false);
        }
    }
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let words = "kind and listKind may not be the same";
        errors.push(Error::invalid(&path.field("listKind"), &text("listKind").into(), words));
    }
}

/// The parts of versions at their paths in errors: at the top if all versions share them, else in
/// each version.
struct Parts<'a> {
    crd: Crd<'a>,
    old: Option<Crd<'a>>,
    spec: &'a Path,
    strictness: Strictness,
}

impl<'a> Parts<'a> {
    /// A member of the versions, with the path of each.
    fn each(&self, member: &str, top: &str) -> Vec<(Path, Version<'a>, &'a Value)> {
        let all: Vec<Version<'a>> = self.crd.versions().collect();
        let given = |version: &Version<'a>| version.0.get(member).filter(|v| !v.is_null());
        let Some(first) = all.first() else { return Vec::new() };
        if let Some(value) = given(first).filter(|v| all.iter().all(|o| given(o) == Some(*v))) {
            return vec![(self.spec.field(top), *first, value)];
        }
        let versions = self.spec.field("versions");
        let each = all.into_iter().enumerate();
        each.filter_map(|(i, v)| Some((versions.index(i).field(member), v, given(&v)?))).collect()
    }

    fn check(&self, errors: &mut Errors) {
        let of_version = |version: Version<'a>| Some((version.name(), version.schema()?));
        let before: BTreeMap<&str, &Value> =
            self.old.into_iter().flat_map(Crd::versions).filter_map(of_version).collect();
        let with_status = self.crd.versions().filter(|version| version.has_status());
        let with_status: BTreeSet<Ordered<&Value>> =
            with_status.filter_map(|version| version.schema()).map(Ordered).collect();
        let mut rules = crate::cel::allowance();
        for (path, version, given) in self.each("schema", "validation") {
            let Some(schema) = given.get("openAPIV3Schema").filter(|s| !s.is_null()) else {
                continue;
            };
            let old = before.get(version.name()).copied();
            let has_status = with_status.contains(&Ordered(schema));
            let context = (has_status, self.strictness);
            errors.extend(openapi::validate(schema, old, context, &path, &mut rules));
        }
        for (path, _, given) in self.each("subresources", "subresources") {
            check_scale(given, &path, errors);
        }
        for (path, _, given) in self.each("additionalPrinterColumns", "additionalPrinterColumns") {
            for (i, column) in given.as_array().unwrap_or_default().iter().enumerate() {
                check_column(column, &path.index(i), errors);
            }
        }
        for (path, version, given) in self.each("selectableFields", "selectableFields") {
            let fields = given.as_array().unwrap_or_default();
            if fields.is_empty() {
                continue;
            }
            match version.schema() {
                Some(schema) => check_selectable(fields, &Structural::read(schema), &path, errors),
                None => {
                    let is_top = path == self.spec.field("selectableFields");
                    let words = if is_top {
                        "may only be set when validations.schema is included"
                    } else {
                        "may only be set when `version.schema.openAPIV3Schema` is not included"
                    };
                    errors.push(Error::invalid(&path, &"".into(), words));
                }
            }
        }
    }
}

fn check_scale(subresources: &Value, path: &Path, errors: &mut Errors) {
    let Some(scale) = subresources.get("scale").filter(|scale| !scale.is_null()) else { return };
    for (key, roots, words, required) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec", true),
        ("statusReplicasPath", &[".status."], "should be a json path under .status", true),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
            false,
        ),
    ] {
        let path = path.field("scale").field(key);
        let given = scale.str_at(&[key]).unwrap_or_default();
        if given.is_empty() {
            errors.extend(required.then(|| Error::required(&path, "")));
        } else if !given.starts_with('.') {
            let words = "must be a simple json path starting with .";
            errors.push(Error::invalid(&path, &given.into(), words));
        } else if !roots.iter().any(|root| given.starts_with(root)) {
            errors.push(Error::invalid(&path, &given.into(), words));
        }
    }
}

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] =
    &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

fn check_column(column: &Value, path: &Path, errors: &mut Errors) {
    let text = |key: &str| column.str_at(&[key]).unwrap_or_default();
    if text("name").is_empty() {
        errors.push(Error::required(&path.field("name"), ""));
    }
    let one_of = |list: &[&str]| format!("must be one of {}", list.join(","));
    let ty = text("type");
    if ty.is_empty() {
        errors.push(Error::required(&path.field("type"), one_of(COLUMN_TYPES)));
    } else if !COLUMN_TYPES.contains(&ty) {
        errors.push(Error::invalid(&path.field("type"), &ty.into(), one_of(COLUMN_TYPES)));
    }
    let format = text("format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        errors.push(Error::invalid(&path.field("format"), &format.into(), one_of(COLUMN_FORMATS)));
    }
    let (path, given) = (path.field("JSONPath"), text("jsonPath"));
    if given.is_empty() {
        errors.push(Error::required(&path, ""));
    } else if !given.starts_with('.') {
        let words = "must be a simple json path starting with .";
        errors.push(Error::invalid(&path, &given.into(), words));
    }
}

fn check_selectable(fields: &[Value], schema: &Structural, path: &Path, errors: &mut Errors) {
    let mut seen: BTreeSet<Vec<Str>> = BTreeSet::new();
    for (i, field) in fields.iter().enumerate() {
        let path = path.index(i).field("jsonPath");
        let given = field.str_at(&["jsonPath"]).unwrap_or_default();
        if given.is_empty() {
            errors.push(Error::required(&path, ""));
            continue;
        }
        let mut invalid = |words: &str| errors.push(Error::invalid(&path, &given.into(), words));
        let (members, found) = match members_of(given, schema) {
            Ok(found) => found,
            Err(why) => {
                invalid(&format!("is an invalid path: {why}"));
                continue;
            }
        };
        if members.first().is_some_and(|first| first == "metadata") {
            invalid("must not point to fields in metadata");
        }
        if !matches!(found.ty, Some(Type::String | Type::Boolean | Type::Integer)) {
            invalid(
                "must point to a field of type string, boolean or integer. Enum string fields and \
                 strings with formats are allowed.",
            );
        }
        if !seen.insert(members) {
            errors.push(Error::duplicate(&path, &given.into()));
        }
    }
    if seen.len() > SELECTABLE_FIELDS_MAX {
        errors.push(Error::too_many(path, seen.len(), SELECTABLE_FIELDS_MAX));
    }
}

/// The members that a path names (`.spec.color`), and the schema of the last one (upstream:
/// `ValidFieldPath`). The error is the reason.
fn members_of<'s>(
    path: &str,
    schema: &'s Structural,
) -> Result<(Vec<Str>, &'s Structural), String> {
    let (mut members, mut node, mut rest) = (Vec::new(), schema, path);
    while !rest.is_empty() {
        if rest.starts_with('[') {
            return Err("array notation is not allowed".to_owned());
        }
        let Some(after) = rest.strip_prefix('.') else {
            return Err(format!("expected [ or . but got: {}", first_token(rest)));
        };
        if after.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let name = first_token(after);
        node = node.member(name).ok_or("does not refer to a valid field")?;
        members.push(name.into());
        rest = &after[name.len()..];
    }
    Ok((members, node))
}

/// A delimiter, or the text before the next one.
fn first_token(text: &str) -> &str {
    let end = text.find(['.', '[', ']']).unwrap_or(text.len());
    &text[..end.max(1)]
}
