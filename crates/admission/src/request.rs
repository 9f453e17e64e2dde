//! Converts a write to an `AdmissionRequest`, with objects in a requested version.

use pintle_meta::{GroupVersionKind, Status, User};
use pintle_registry::admission::{Attributes, Operation, Options};
use pintle_registry::request::{DeleteOptions, WriteOptions};
use pintle_registry::{Resource, StorageConverter};
use pintle_value::{Map, Str, Value};

use crate::matching::is_namespace;

/// The request without uid and objects, for a recipient that knows `version` of the resource.
pub(crate) fn describe(write: &Attributes<'_>, version: &Resource) -> Map {
    let mut request = Map::new();
    let mut set = |member: &str, value: Value| _ = request.insert(member, value);
    let kind = |resource: &Resource| match write.kind {
        Some(kind) => kind_of(kind),
        None => kind_of(&resource.gvk()),
    };
    set("kind", kind(version));
    set("resource", resource(version));
    set("requestKind", kind(write.resource));
    set("requestResource", resource(write.resource));
    if !write.subresource.is_empty() {
        set("subResource", write.subresource.into());
        set("requestSubResource", write.subresource.into());
    }
    if !write.name.is_empty() {
        set("name", write.name.into());
    }
    let namespace = namespace(write);
    if !namespace.is_empty() {
        set("namespace", namespace.into());
    }
    set("operation", write.operation.name().into());
    set("userInfo", user(write.user));
    set("dryRun", write.dry_run.into());
    set("options", options(write));
    request
}

/// The namespace of a write for webhooks and policies: a Namespace is in itself (upstream:
/// `RequestInfo`).
pub(crate) fn namespace<'a>(write: &Attributes<'a>) -> &'a str {
    if is_namespace(write.resource) { write.name } else { write.namespace }
}

/// The options of a write as the client sent them; a patch has those of an update, or of a create.
fn options(write: &Attributes<'_>) -> Value {
    let mut members = Map::new();
    let kind = match write.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return Value::Null,
    };
    members.insert("kind", kind);
    members.insert("apiVersion", "meta.k8s.io/v1");
    match write.options {
        Options::Write(options) => write_options(options, &mut members),
        Options::Delete(options) => delete_options(options, &mut members),
        Options::None => {}
    }
    if write.dry_run {
        members.insert("dryRun", vec![Value::from("All")]);
    }
    members.into()
}

fn write_options(options: &WriteOptions, members: &mut Map) {
    if !options.field_manager.is_empty() {
        members.insert("fieldManager", options.field_manager.clone());
    }
    if let Some(validation) = options.field_validation {
        members.insert("fieldValidation", validation.name());
    }
}

fn delete_options(options: &DeleteOptions, members: &mut Map) {
    if let Some(seconds) = options.grace_period_seconds {
        members.insert("gracePeriodSeconds", seconds);
    }
    let mut preconditions = Map::new();
    for (member, expected) in
        [("uid", &options.uid), ("resourceVersion", &options.resource_version)]
    {
        if let Some(expected) = expected {
            preconditions.insert(member, expected.clone());
        }
    }
    if !preconditions.is_empty() {
        members.insert("preconditions", preconditions);
    }
    if let Some(orphans) = options.orphan_dependents {
        members.insert("orphanDependents", orphans);
    }
    if let Some(propagation) = options.propagation {
        members.insert("propagationPolicy", propagation.name());
    }
}

fn kind_of(kind: &GroupVersionKind) -> Value {
    let GroupVersionKind { group, version, kind } = kind.clone();
    Value::from([("group", group), ("version", version), ("kind", kind)])
}

fn resource(resource: &Resource) -> Value {
    let name = &resource.resource;
    Value::from([
        ("group", Value::from(name.group.clone())),
        ("version", name.version.clone().into()),
        ("resource", name.resource.clone().into()),
    ])
}

fn user(user: &User) -> Value {
    let list = |texts: &[String]| {
        Value::Array(texts.iter().map(|text| Value::from(Str::from(text.as_str()))).collect())
    };
    let mut info = Map::new();
    info.insert("username", user.name.as_str());
    if !user.uid.is_empty() {
        info.insert("uid", user.uid.as_str());
    }
    if !user.groups.is_empty() {
        info.insert("groups", list(&user.groups));
    }
    if !user.extra.is_empty() {
        let mut extra = Map::new();
        for (key, values) in &user.extra {
            extra.insert(key.as_str(), list(values));
        }
        info.insert("extra", extra);
    }
    info.into()
}

/// Converts an object from the form that the write path works on to `version`. An object of another
/// kind than the resource's is the same in all versions.
pub(crate) async fn to_version(
    object: &Value,
    write: &Attributes<'_>,
    version: &Resource,
) -> Result<Value, Status> {
    let mut object = object.clone();
    if write.kind.is_some() {
        return Ok(object);
    }
    match converter(version).filter(|_| version.resource != write.resource.resource) {
        Some(converter) => object = first(converter.to_own_form(vec![object]).await?),
        None => version.to_served(&mut object),
    }
    version.stamp(&mut object);
    Ok(object)
}

/// Converts an object from `version` to the form that the write path works on.
pub(crate) async fn to_stored_form(
    mut object: Value,
    write: &Attributes<'_>,
    version: &Resource,
) -> Result<Value, Status> {
    if write.kind.is_some() {
        return Ok(object);
    }
    match converter(write.resource).filter(|_| version.resource != write.resource.resource) {
        Some(converter) => Ok(first(converter.to_own_form(vec![object]).await?)),
        None => {
            version.to_stored(&mut object);
            Ok(object)
        }
    }
}

/// Converts an object from the form that the write path works on to the version of the write.
pub(crate) fn to_written_version(mut object: Value, write: &Attributes<'_>) -> Value {
    if write.kind.is_none() {
        write.resource.to_served(&mut object);
        write.resource.stamp(&mut object);
    }
    object
}

/// Refuses an object of a built-in kind to which a webhook or policy gave another kind or version:
/// upstream does not decode it as its own kind.
pub(crate) fn check_kind(changed: &Value, before: &Value) -> Result<(), Status> {
    let [kind, api_version] = ["kind", "apiVersion"].map(|member| {
        let own = changed.str_at(&[member]).filter(|text| !text.is_empty());
        own.or_else(|| before.str_at(&[member])).unwrap_or_default()
    });
    if before.str_at(&["kind"]) == Some(kind) && before.str_at(&["apiVersion"]) == Some(api_version)
    {
        return Ok(());
    }
    Err(Status::internal(format_args!(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \
         \"pkg/runtime/scheme.go:111\""
    )))
}

fn converter(resource: &Resource) -> Option<&dyn StorageConverter> {
    resource.storage.as_ref()?.converter.as_deref()
}

fn first(objects: Vec<Value>) -> Value {
    objects.into_iter().next().unwrap_or_default()
}
