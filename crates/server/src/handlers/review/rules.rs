//! The validation rules of access reviews, with upstream's texts
//! (`pkg/apis/authorization/validation`).
//!
//! A requirement of a selector that cannot be parsed is ignored: a selector can only narrow a
//! request, so the ruling does not allow more (AUTHZ-02).

use pintle_meta::field::{self, Error, Errors};
use pintle_meta::{fields, labels, object, validation};
use pintle_value::{Map, Path, Value};

/// Members of metadata that are ignored: the server wipes them, or another rule checks them.
const IGNORED: &[&str] = &[
    "managedFields",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "namespace",
];

/// Validates the attributes of a self review.
pub(super) fn attributes(review: &Value) -> Errors {
    let mut errors = one_kind_of_attributes(review);
    errors.extend(selectors(review));
    errors
}

/// Validates the attributes and the user.
pub(super) fn attributes_of_subject(review: &Value) -> Errors {
    let mut errors = one_kind_of_attributes(review);
    let user = review.str_at(&["spec", "user"]).unwrap_or_default();
    let groups = groups(review).and_then(Value::as_array).unwrap_or_default();
    if user.is_empty() && groups.is_empty() {
        let why = "at least one of user or group must be specified";
        errors.push(Error::invalid(&spec("user"), &Value::from(user), why));
    }
    errors.extend(selectors(review));
    errors
}

/// The groups that a review names; `v1beta1` calls them `group`.
pub(super) fn groups(review: &Value) -> Option<&Value> {
    let spec = review.get("spec")?;
    spec.get("groups").or_else(|| spec.get("group"))
}

/// Validates a review in a namespace.
pub(super) fn local(review: &Value) -> Errors {
    let mut errors = attributes_of_subject(review);
    errors.extend(metadata(review, "must be empty except for namespace"));
    if let Some(resource) = review.at(&["spec", "resourceAttributes"]) {
        let is_set = resource.str_at(&["namespace"]).unwrap_or_default();
        if is_set != object::namespace(review) {
            let path = spec("resourceAttributes").field("namespace");
            errors.push(Error::invalid(&path, &is_set.into(), "must match metadata.namespace"));
        }
    }
    if let Some(path) = review.at(&["spec", "nonResourceAttributes"]) {
        let (at, shown) = (spec("nonResourceAttributes"), shown(path));
        errors.push(Error::invalid_shown(&at, shown, "disallowed on this kind of request"));
    }
    errors
}

/// Refuses metadata with a member that is neither empty nor [`IGNORED`]. The error does not show
/// the namespace.
pub(super) fn empty_metadata(review: &Value) -> Option<Error> {
    let mut review = review.clone();
    review.object_entry("metadata").remove("namespace");
    metadata(&review, "must be empty")
}

/// The requirements of the field selector that can be parsed.
pub(super) fn fields_of(review: &Value) -> Vec<fields::Requirement> {
    let Some(selector) = review.at(&["spec", "resourceAttributes", "fieldSelector"]) else {
        return Vec::new();
    };
    let requirements = selector.get("requirements").and_then(Value::as_array).unwrap_or_default();
    if requirements.is_empty() {
        let raw = selector.str_at(&["rawSelector"]).unwrap_or_default();
        return fields::Selector::parse(raw)
            .map_or_else(|_| Vec::new(), |s| s.requirements().to_vec());
    }
    requirements.iter().filter_map(field_requirement).collect()
}

/// The requirements of the label selector that can be parsed.
pub(super) fn labels_of(review: &Value) -> Vec<labels::Requirement> {
    let Some(selector) = review.at(&["spec", "resourceAttributes", "labelSelector"]) else {
        return Vec::new();
    };
    let requirements = selector.get("requirements").and_then(Value::as_array).unwrap_or_default();
    let of = |selector: labels::Selector| selector.requirements().to_vec();
    if requirements.is_empty() {
        let raw = selector.str_at(&["rawSelector"]).unwrap_or_default();
        return labels::Selector::parse(raw).map_or_else(|_| Vec::new(), of);
    }
    requirements.iter().filter_map(|one| label_selector(one).ok()).flat_map(of).collect()
}

/// Describes the selectors that could not be parsed; `""` if all could.
pub(super) fn unread_selectors(review: &Value) -> String {
    let of = |part: &str, read: fn(&Value) -> bool, parse: fn(&str) -> bool| {
        let selector = review.at(&["spec", "resourceAttributes", part])?;
        let requirements = selector.get("requirements").and_then(Value::as_array);
        let requirements = requirements.unwrap_or_default();
        let raw = selector.str_at(&["rawSelector"]).unwrap_or_default();
        let count = requirements.iter().filter(|requirement| read(requirement)).count();
        let how = match requirements {
            [] if raw.is_empty() || parse(raw) => return None,
            [..] if count == requirements.len() && count > 0 => return None,
            _ if count > 0 => "partially ignored",
            _ => "ignored",
        };
        Some(format!("spec.resourceAttributes.{part} {how} due to parse error"))
    };
    let reads_field = |requirement: &Value| field_requirement(requirement).is_some();
    let of_fields = of("fieldSelector", reads_field, |raw| fields::Selector::parse(raw).is_ok());
    let of_labels = of("labelSelector", reads_label, |raw| labels::Selector::parse(raw).is_ok());
    let both: Vec<String> = of_fields.into_iter().chain(of_labels).collect();
    both.join("; ")
}

/// Converts a requirement to a field selector's, if a field selector can express it.
fn field_requirement(requirement: &Value) -> Option<fields::Requirement> {
    let equal = match requirement.str_at(&["operator"])? {
        "In" => true,
        "NotIn" => false,
        _ => return None,
    };
    let [value] = requirement.get("values").and_then(Value::as_array)? else { return None };
    let field = requirement.str_at(&["key"]).unwrap_or_default().into();
    Some(fields::Requirement { field, equal, value: value.as_str()?.into() })
}

fn reads_label(requirement: &Value) -> bool {
    label_selector(requirement).is_ok()
}

/// A label selector of one requirement.
fn label_selector(requirement: &Value) -> Result<labels::Selector, pintle_meta::Error> {
    let selector = Value::from([("matchExpressions", vec![requirement.clone()])]);
    labels::Selector::from_label_selector(Some(&selector))
}

fn one_kind_of_attributes(review: &Value) -> Errors {
    let given = |part| review.at(&["spec", part]);
    match (given("resourceAttributes"), given("nonResourceAttributes")) {
        (Some(_), Some(path)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            Error::invalid_shown(&spec("nonResourceAttributes"), shown(path), why).into()
        }
        (None, None) => {
            let why =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Error::invalid(&spec("resourceAttributes"), &Value::Null, why).into()
        }
        _ => Errors::new(),
    }
}

fn selectors(review: &Value) -> Errors {
    let of_fields = selector(review, "fieldSelector", validation::field_requirement);
    let of_labels = selector(review, "labelSelector", validation::label_requirement);
    of_fields.into_iter().chain(of_labels).collect()
}

/// Validates a selector: one text, or a list of requirements. Operators that only newer servers
/// know are accepted.
fn selector(review: &Value, part: &str, rule: fn(&Value, &Path) -> Errors) -> Errors {
    let Some(selector) = review.at(&["spec", "resourceAttributes", part]) else {
        return Errors::new();
    };
    let path = spec("resourceAttributes").field(part);
    let raw = selector.str_at(&["rawSelector"]).unwrap_or_default();
    let requirements = selector.get("requirements").and_then(Value::as_array).unwrap_or_default();
    let mut errors = Errors::new();
    if !raw.is_empty() && !requirements.is_empty() {
        let why = "may not specified at the same time as requirements";
        errors.push(Error::invalid(&path.field("rawSelector"), &raw.into(), why));
    }
    let path_of_all = path.field("requirements");
    if raw.is_empty() && requirements.is_empty() {
        let why = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(Error::required(&path_of_all, why));
    }
    for (i, requirement) in requirements.iter().enumerate() {
        errors.extend(rule(requirement, &path_of_all.index(i)));
    }
    errors
}

fn metadata(review: &Value, why: &str) -> Option<Error> {
    let metadata = review.get("metadata")?;
    let is_set = |(name, value): (&str, &Value)| !IGNORED.contains(&name) && !is_empty(value);
    let has_metadata =
        metadata.as_object().is_some_and(|all| all.iter().any(|(k, v)| is_set((k, v))));
    has_metadata
        .then(|| Error::invalid_shown(&Path::new("metadata"), shown_metadata(metadata), why))
}

/// Formats metadata as Go does.
fn shown_metadata(metadata: &Value) -> String {
    const TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let schema = pintle_schema::builtin();
    let mut shown = Vec::new();
    if let Some(ty) = schema.find(TYPE) {
        pintle_schema::encode::write(schema, ty, metadata, &mut shown);
    }
    String::from_utf8_lossy(&shown).into_owned()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Formats non-resource attributes as Go does: the Go type has no JSON names.
fn shown(path: &Value) -> String {
    let text = |member| path.str_at(&[member]).unwrap_or_default();
    let members: Map = [("Path", text("path")), ("Verb", text("verb"))]
        .map(|(name, text)| (name.into(), Value::from(text)))
        .into_iter()
        .collect();
    field::shown(&members.into())
}

fn spec(member: &str) -> Path {
    Path::new("spec").field(member)
}
