//! Reviews: questions about who the user is and what a user may do. They are answered and not
//! stored (PATH-13).

mod rules;

use bytes::Bytes;
use pintle_auth::{Attributes, Decision, Objects, Rules, Subject, User};
use pintle_meta::{GroupKind, Status, field, object};
use pintle_registry::request::Body;
use pintle_value::{Map, Value};

use super::Call;
use crate::options::{Write, write_options};
use crate::respond::{self, Response};
use crate::target::Found;

/// The question of a review.
#[derive(Clone, Copy)]
enum Question {
    /// Who the requesting user is, or what this user may do in a namespace.
    Own(fn(&Call<'_>, &Found, &mut Value) -> Result<(), Status>),
    /// The user of a token.
    Token,
    /// Whether a user may do something: the function validates the review.
    Access(fn(&Found, &mut Value) -> Result<(), Status>, Reviewed),
}

/// The user that a review is about.
#[derive(Clone, Copy)]
enum Reviewed {
    /// The requesting user.
    Own,
    /// The user that the review names.
    Named,
}

use Question::{Access, Own, Token};

/// The reviews by group and resource.
const REVIEWS: &[(&str, &str, Question)] = &[
    ("authentication.k8s.io", "selfsubjectreviews", Own(self_subject)),
    ("authentication.k8s.io", "tokenreviews", Token),
    ("authorization.k8s.io", "localsubjectaccessreviews", Access(check_local, Reviewed::Named)),
    ("authorization.k8s.io", "selfsubjectaccessreviews", Access(check_own, Reviewed::Own)),
    ("authorization.k8s.io", "selfsubjectrulesreviews", Own(self_subject_rules)),
    ("authorization.k8s.io", "subjectaccessreviews", Access(check_named, Reviewed::Named)),
];

/// Serves POST of a review.
pub(super) async fn create(
    call: &Call<'_>,
    found: &Found,
    bytes: Bytes,
) -> Result<Response, Status> {
    let resource = &found.target.resource;
    let (group, name) = (&resource.resource.group, &resource.resource.resource);
    let known = REVIEWS.iter().find(|(g, r, _)| g == group && r == name);
    let Some((_, _, question)) = known.filter(|_| found.subresource.is_none()) else {
        return Err(Status::not_implemented(&resource.group_resource().to_string()));
    };
    let (negotiated, rendering) = call.negotiate(found)?;
    let encoding = call.preferences().body(found.encodings())?;
    let options = write_options(call.query, Write::Create, call.warnings)?;
    let body = Body { bytes, encoding };
    let context = call.context();
    let (registry, target) = (&call.api.registry, &found.target);
    let mut review = registry.receive(target, &body, &options, &context, |_| {}).await?;
    match question {
        Own(answer) => answer(call, found, &mut review)?,
        Token => token(call, &mut review).await?,
        Access(check, whose) => {
            check(found, &mut review)?;
            access(call, *whose, &mut review).await;
        }
    }
    let json = rendering.value(&review, &resource.schema.get(resource.ty).name)?;
    Ok(respond::object(201, json, rendering.type_name(), negotiated))
}

/// Fills in a SelfSubjectReview. Upstream returns a new review, not the posted one.
fn self_subject(call: &Call<'_>, _: &Found, review: &mut Value) -> Result<(), Status> {
    let created = pintle_meta::time::format(call.now.unix_micros);
    let review = review.make_object();
    review.insert("metadata", Value::from([("creationTimestamp", created)]));
    review.entry_object("status").insert("userInfo", user_info(call.user));
    Ok(())
}

async fn token(call: &Call<'_>, review: &mut Value) -> Result<(), Status> {
    let token = review.str_at(&["spec", "token"]).unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = review.at(&["spec", "audiences"]).map(texts).unwrap_or_default();
    let api = call.api;
    let found = api.authentication.review(token, &audiences, call.now, &api.registry).await;
    let mut status = Map::new();
    match found {
        Ok(found) => {
            call.record.iter().for_each(|record| record.presented(&found));
            status.insert("authenticated", true);
            status.insert("user", user_info(&found.user));
            status.insert("audiences", found.audiences);
        }
        Err(error) => {
            status.insert("user", Map::new());
            let error = match error {
                pintle_auth::Error::Token => error.to_string(),
                known => format!("[invalid bearer token, {known}]"), // as upstream joins errors
            };
            status.insert("error", error);
        }
    }
    review.make_object().insert("status", status);
    Ok(())
}

fn check_own(found: &Found, review: &mut Value) -> Result<(), Status> {
    let mut errors = rules::attributes(review);
    errors.extend(rules::empty_metadata(review));
    refuse(found, &errors)
}

fn check_named(found: &Found, review: &mut Value) -> Result<(), Status> {
    let mut errors = rules::attributes_of_subject(review);
    errors.extend(rules::empty_metadata(review));
    refuse(found, &errors)
}

fn check_local(found: &Found, review: &mut Value) -> Result<(), Status> {
    check_namespace(found, review)?;
    object::set_text(review, "namespace", found.target.namespace.as_str());
    refuse(found, &rules::local(review))
}

/// Refuses a posted object whose namespace is not the request's.
pub(super) fn check_namespace(found: &Found, posted: &Value) -> Result<(), Status> {
    let namespace = object::namespace(posted);
    if namespace.is_empty() || namespace == found.target.namespace {
        return Ok(());
    }
    let why =
        "the namespace of the provided object does not match the namespace sent on the request";
    Err(Status::bad_request(why))
}

fn self_subject_rules(call: &Call<'_>, _: &Found, review: &mut Value) -> Result<(), Status> {
    let namespace = review.str_at(&["spec", "namespace"]).unwrap_or_default().to_owned();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    // Upstream returns a new review, which does not repeat the posted spec.
    let members = review.make_object();
    members.insert("metadata", Map::new());
    members.insert("spec", Map::new());
    let Rules { resource, non_resource, incomplete, error } =
        call.api.authorizer.rules(call.user, &namespace);
    let mut resource_rules = Vec::with_capacity(resource.len());
    for rule in resource {
        let mut members = Map::new();
        members.insert("verbs", rule.verbs);
        members.insert("apiGroups", rule.api_groups);
        members.insert("resources", rule.resources);
        if !rule.resource_names.is_empty() {
            members.insert("resourceNames", rule.resource_names);
        }
        resource_rules.push(Value::Object(members));
    }
    let mut path_rules = Vec::with_capacity(non_resource.len());
    for rule in non_resource {
        let mut members = Map::new();
        members.insert("verbs", rule.verbs);
        members.insert("nonResourceURLs", rule.paths);
        path_rules.push(Value::Object(members));
    }
    let status = review.object_entry("status");
    status.insert("resourceRules", resource_rules);
    status.insert("nonResourceRules", path_rules);
    status.insert("incomplete", incomplete);
    if !error.is_empty() {
        status.insert("evaluationError", error);
    }
    Ok(())
}

/// Authorizes the attributes of an access review and writes the ruling to its status.
async fn access(call: &Call<'_>, whose: Reviewed, review: &mut Value) {
    let user = match whose {
        Reviewed::Own => call.user,
        Reviewed::Named => &subject(review),
    };
    let spec = review.get("spec");
    let text =
        |part: &str, key: &str| spec.and_then(|spec| spec.str_at(&[part, key])).unwrap_or_default();
    let of_resource = spec.is_some_and(|spec| spec.get("resourceAttributes").is_some());
    let (fields, labels) = (rules::fields_of(review), rules::labels_of(review));
    let (verb, subject) = if of_resource {
        let text = |key| text("resourceAttributes", key);
        let subject = Subject::Resource(Objects {
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
            fields: &fields,
            labels: &labels,
            version: if text("version").is_empty() { "*" } else { text("version") },
        });
        (text("verb"), subject)
    } else {
        let text = |key| text("nonResourceAttributes", key);
        (text("verb"), Subject::Path(text("path")))
    };
    let ruling = call.api.authorizer.authorize(&Attributes { user, verb, subject }).await;
    let mut status = Map::new();
    status.insert("allowed", ruling.allowed());
    if ruling.decision == Decision::Deny {
        status.insert("denied", true);
    }
    let reason = ruling.reason.to_string();
    if !reason.is_empty() {
        status.insert("reason", reason);
    }
    let unread = Some(rules::unread_selectors(review)).filter(|unread| !unread.is_empty());
    let wrong: Vec<String> = ruling.error.into_iter().chain(unread).collect();
    if !wrong.is_empty() {
        status.insert("evaluationError", wrong.join("; "));
    }
    review.make_object().insert("status", status);
}

/// Reads the user from the spec of an access review.
fn subject(review: &Value) -> User {
    let extra = review.at(&["spec", "extra"]).and_then(Value::as_object);
    User {
        name: review.str_at(&["spec", "user"]).unwrap_or_default().to_owned(),
        uid: review.str_at(&["spec", "uid"]).unwrap_or_default().to_owned(),
        groups: rules::groups(review).map(texts).unwrap_or_default(),
        extra: extra
            .into_iter()
            .flat_map(Map::iter)
            .map(|(k, v)| (k.to_string(), texts(v)))
            .collect(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn user_info(user: &User) -> Map {
    let mut info = Map::new();
    info.insert("username", user.name.as_str());
    if !user.uid.is_empty() {
        info.insert("uid", user.uid.as_str());
    }
    if !user.groups.is_empty() {
        info.insert("groups", user.groups.clone());
    }
    if !user.extra.is_empty() {
        let extra: Map =
            user.extra.iter().map(|(k, v)| (k.as_str().into(), Value::from(v.clone()))).collect();
        info.insert("extra", extra);
    }
    info
}

fn refuse(found: &Found, errors: &[field::Error]) -> Result<(), Status> {
    if errors.is_empty() {
        Ok(())
    } else {
        // Upstream's error names the group of reviews and no kind.
        let group = found.target.resource.resource.group.clone();
        Err(Status::invalid(&GroupKind::new(group, ""), "", errors))
    }
}
