//! DELETE of one object, or of a collection.

use bytes::Bytes;
use pintle_meta::{GroupKind, Status, field};
use pintle_registry::request::{DeleteOptions, Encoding, IGNORE_READ_ERRORS, Recorder};
use pintle_value::{Path, Value};

use super::Call;
use crate::negotiation::Encodings;
use crate::options::{delete_options, list_options};
use crate::respond::Response;
use crate::target::Found;

/// Serves DELETE of one object.
pub(super) async fn delete(
    call: &Call<'_>,
    found: &Found,
    body: Bytes,
) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let options = options(call, &body)?;
    if options.ignore_read_errors {
        permit_unsafe_deletion(call, found).await?;
    }
    let outcome = call.api.registry.delete(&found.target, &options, &call.context()).await?;
    call.respond(&outcome, &rendering, negotiated)
}

/// Serves DELETE of a collection.
pub(super) async fn delete_collection(
    call: &Call<'_>,
    found: &Found,
    body: Bytes,
) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    let selection = list_options(call.query)?;
    let options = options(call, &body)?;
    if options.ignore_read_errors {
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        return Err(refused(&[why]));
    }
    let registry = &call.api.registry;
    let list = registry
        .delete_collection(&found.collection(), &selection, &options, &call.context())
        .await?;
    call.respond_list(list, &rendering, negotiated).await
}

fn options(call: &Call<'_>, body: &Bytes) -> Result<DeleteOptions, Status> {
    // An empty body needs no `Content-Type`.
    let encoding =
        if body.is_empty() { Encoding::Json } else { call.preferences().body(Encodings::ALL)? };
    let mut options = delete_options(call.query, body, encoding, call.warnings)?;
    if !body.is_empty() {
        call.record.iter().for_each(|record| record.delete_options(body, encoding));
    }
    options.ignore_read_errors &= call.api.settings.unsafe_deletion;
    if options.ignore_read_errors {
        refuse_other_options(&options)?;
    }
    Ok(options)
}

/// Requires the permission to delete an object that cannot be decoded (upstream:
/// `authorizeUnsafeDelete`).
async fn permit_unsafe_deletion(call: &Call<'_>, found: &Found) -> Result<(), Status> {
    const VERB: &str = "unsafe-delete-ignore-read-errors";
    if let Some(record) = call.record {
        record.annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", "");
    }
    let ruling = call.api.rule(call.user, VERB, call.info).await;
    if ruling.allowed() {
        return Ok(());
    }
    let target = &found.target;
    let why = format!("not permitted to do \"{VERB}\", reason: {}", ruling.reason);
    Err(Status::forbidden(&target.resource.group_resource(), &target.name, &why))
}

/// Refuses options that need the stored object, which cannot be decoded (upstream:
/// `ValidateIgnoreStoreReadError`).
fn refuse_other_options(options: &DeleteOptions) -> Result<(), Status> {
    let has_preconditions = options.uid.is_some() || options.resource_version.is_some();
    let others = [
        (options.dry_run, "cannot be set together with .dryRun"),
        (options.propagation.is_some(), "cannot be set together with .propagationPolicy"),
        (options.orphan_dependents.is_some(), "cannot be set together with .orphanDependents"),
        (options.grace_period_seconds.is_some(), "cannot be set together with .gracePeriodSeconds"),
        (has_preconditions, "cannot be set together with .preconditions"),
    ];
    let whys: Vec<&str> =
        others.iter().filter(|(is_set, _)| *is_set).map(|(_, why)| *why).collect();
    if whys.is_empty() { Ok(()) } else { Err(refused(&whys)) }
}

/// The 422 about `ignoreStoreReadErrorWithClusterBreakingPotential`, with these reasons.
fn refused(whys: &[&str]) -> Status {
    let path = Path::new(IGNORE_READ_ERRORS);
    let error = |why: &&str| field::Error::invalid(&path, &Value::Bool(true), *why);
    let errors: Vec<field::Error> = whys.iter().map(error).collect();
    Status::invalid(&GroupKind::new("meta.k8s.io", "DeleteOptions"), "", &errors)
}
