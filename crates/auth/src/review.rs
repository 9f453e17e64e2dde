//! SubjectAccessReviews: the request and response of an authorization webhook.

use pintle_meta::{fields, labels};
use pintle_value::{Map, Value, json};

use crate::{Attributes, Objects, Subject, User};

/// The version of a webhook's reviews.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReviewVersion {
    V1,
    /// The default of the flags.
    #[default]
    V1beta1,
}

impl ReviewVersion {
    /// Parses `v1` or `v1beta1`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1beta1),
            _ => None,
        }
    }
}

/// The `spec` of the review of a check, in version v1.
pub fn question(asked: &Attributes<'_>) -> Value {
    let mut spec = Map::new();
    match asked.subject {
        Subject::Resource(objects) => {
            spec.insert("resourceAttributes", resource_attributes(asked.verb, &objects));
        }
        Subject::Path(path) => {
            spec.insert("nonResourceAttributes", texts([("path", path), ("verb", asked.verb)]));
        }
    }
    let User { name, uid, groups, extra } = asked.user;
    for (member, text) in [("user", name), ("uid", uid)] {
        if !text.is_empty() {
            spec.insert(member, text.as_str());
        }
    }
    if !groups.is_empty() {
        spec.insert("groups", groups.clone());
    }
    if !extra.is_empty() {
        let mut extra: Vec<_> = extra.iter().collect();
        extra.sort_unstable(); // equal checks have equal texts, which are cache keys
        let extra: Map =
            extra.into_iter().map(|(k, v)| (k.as_str().into(), Value::from(v.clone()))).collect();
        spec.insert("extra", extra);
    }
    Value::Object(spec)
}

fn resource_attributes(verb: &str, objects: &Objects<'_>) -> Map {
    let Objects { group, version, resource, subresource, namespace, name, fields, labels } =
        *objects;
    let mut attributes = texts([
        ("namespace", namespace),
        ("verb", verb),
        ("group", group),
        ("version", version),
        ("resource", resource),
        ("subresource", subresource),
        ("name", name),
    ]);
    let mut select = |member: &str, requirements: Vec<Value>| {
        if !requirements.is_empty() {
            attributes.insert(member, Value::from([("requirements", requirements)]));
        }
    };
    select("fieldSelector", fields.iter().map(of_field).collect());
    select("labelSelector", labels.iter().filter_map(of_label).collect());
    attributes
}

fn of_field(requirement: &fields::Requirement) -> Value {
    let operator = if requirement.equal { "In" } else { "NotIn" };
    let mut members = texts([("key", requirement.field.as_str()), ("operator", operator)]);
    members.insert("values", vec![Value::from(requirement.value.as_str())]);
    Value::Object(members)
}

/// `None` for a comparison, which reviews cannot express. Without the requirement, the webhook
/// judges a broader selection.
fn of_label(requirement: &labels::Requirement) -> Option<Value> {
    use labels::Operator::{
        DoesNotExist, DoubleEquals, Equals, Exists, GreaterThan, In, LessThan, NotEquals, NotIn,
    };
    let operator = match requirement.operator() {
        Equals | DoubleEquals | In => "In",
        NotEquals | NotIn => "NotIn",
        Exists => "Exists",
        DoesNotExist => "DoesNotExist",
        GreaterThan | LessThan => return None,
    };
    let mut members = texts([("key", requirement.key()), ("operator", operator)]);
    if !requirement.values().is_empty() {
        members.insert("values", requirement.values().to_vec());
    }
    Some(Value::Object(members))
}

/// The members that are not empty.
fn texts<const N: usize>(members: [(&str, &str); N]) -> Map {
    let present = members.into_iter().filter(|(_, text)| !text.is_empty());
    present.map(|(name, text)| (name.into(), Value::from(text))).collect()
}

/// The review as JSON.
pub fn request(spec: &Value, version: ReviewVersion) -> Vec<u8> {
    let mut spec = spec.clone();
    let api_version = match version {
        ReviewVersion::V1 => "authorization.k8s.io/v1",
        ReviewVersion::V1beta1 => {
            // The only member with another name in v1beta1.
            let members = spec.make_object();
            if let Some(groups) = members.remove("groups") {
                members.insert("group", groups);
            }
            "authorization.k8s.io/v1beta1"
        }
    };
    let mut review = texts([("kind", "SubjectAccessReview"), ("apiVersion", api_version)]);
    review.insert("metadata", Map::new());
    review.insert("spec", spec);
    review.insert("status", Value::from([("allowed", false)]));
    json::to_string(&Value::Object(review)).into_bytes()
}

/// The response of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub allowed: bool,
    pub denied: bool,
    pub reason: String,
}

/// Parses a response.
///
/// # Errors
/// If it is not a review of the requested version.
pub fn verdict(answer: &[u8], version: ReviewVersion) -> Result<Verdict, String> {
    let review = json::parse(answer).map_err(|why| why.to_string())?;
    let text = |member: &str| review.str_at(&[member]).unwrap_or_default();
    let api_version = match version {
        ReviewVersion::V1 => "authorization.k8s.io/v1",
        ReviewVersion::V1beta1 => "authorization.k8s.io/v1beta1",
    };
    if text("kind") != "SubjectAccessReview" || text("apiVersion") != api_version {
        return Err(format!(
            "the answer is a {:?} of {:?}, and not a SubjectAccessReview of {api_version:?}",
            text("kind"),
            text("apiVersion")
        ));
    }
    let is = |member: &str| match review.at(&["status", member]) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(is)) => Ok(*is),
        Some(_) => Err(format!("status.{member} must be true or false")),
    };
    let reason = review.str_at(&["status", "reason"]).unwrap_or_default().to_owned();
    Ok(Verdict { allowed: is("allowed")?, denied: is("denied")?, reason })
}
