//! Parses the options of requests from the query as upstream does: a value that cannot be parsed
//! gives a 400. An invalid value gives a 422, which names the options' kind as the invalid
//! object's.
//!
//! The registry validates combinations of resource version, limit and continue token.

mod delete;

use std::time::Duration;

use pintle_meta::quote::{is_print, quote};
use pintle_meta::{GroupKind, Status, field};
use pintle_registry::request::{FieldValidation, ListOptions, PatchType, Warnings, WriteOptions};
use pintle_value::{Path, Value};

pub(crate) use delete::{delete_options, recorded_options};

use crate::query::Query;
use crate::request_info::flag;

/// The group of the option kinds in errors.
const META_GROUP: &str = "meta.k8s.io";
/// The longest name of a field manager, in bytes.
const FIELD_MANAGER_BYTES_MAX: usize = 128;

/// Options of list, watch and deletecollection.
pub(crate) fn list_options(query: &Query) -> Result<ListOptions, Status> {
    integer(query, "timeoutSeconds")?; // lists ignore the timeout, but it must be a number
    Ok(ListOptions {
        label_selector: query.text("labelSelector").into(),
        field_selector: query.text("fieldSelector").into(),
        resource_version: query.text("resourceVersion").into(),
        version_match: query.text("resourceVersionMatch").into(),
        // Upstream treats a negative limit as none.
        limit: integer(query, "limit")?.and_then(|limit| u64::try_from(limit).ok()).unwrap_or(0),
        continue_token: query.text("continue").into(),
        bookmarks: flag(query.get("allowWatchBookmarks")),
        send_initial_events: query.get("sendInitialEvents").map(|value| flag(Some(value))),
        names_unreadable: false,
    })
}

/// The 422 for `sendInitialEvents` where the feature `WatchList` is off.
pub(crate) fn no_initial_events() -> Status {
    let why =
        "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    let error = field::Error::forbidden(&Path::new("sendInitialEvents"), why);
    Status::invalid(&GroupKind::new(META_GROUP, "ListOptions"), "", &[error])
}

/// The watch timeout that the client sets; `None` for zero. A negative timeout ends the watch at
/// once. (Nanoseconds overflow as Go's do.)
pub(crate) fn watch_timeout(query: &Query) -> Result<Option<Duration>, Status> {
    const NANOS: i64 = 1_000_000_000;
    let nanos = integer(query, "timeoutSeconds")?.map(|seconds| seconds.wrapping_mul(NANOS));
    let given = nanos.filter(|nanos| *nanos != 0);
    Ok(given.map(|nanos| Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))))
}

/// The request timeout that the client sets (ST-23); `None` for zero and for a negative one.
pub(crate) fn request_timeout(query: &Query) -> Result<Option<Duration>, Status> {
    let text = query.text("timeout");
    if text.is_empty() {
        return Ok(None);
    }
    let nanos = pintle_meta::duration::parse(text).map_err(|error| {
        let why = format!("invalid timeout specified in the request URL - {error}");
        Status::bad_request(why)
    })?;
    Ok(u64::try_from(nanos).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos))
}

/// The three kinds of options of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Create,
    Update,
    Patch(PatchType),
}

impl Write {
    const fn kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch(_) => "PatchOptions",
        }
    }
}

/// Options of create, update and patch.
pub(crate) fn write_options(
    query: &Query,
    write: Write,
    warnings: &Warnings,
) -> Result<WriteOptions, Status> {
    let mut errors = field::Errors::new();
    let manager = query.text("fieldManager");
    match write {
        Write::Patch(PatchType::Apply(_)) if manager.is_empty() => {
            // SSA-04
            let path = Path::new("fieldManager");
            errors.push(field::Error::required(&path, "is required for apply patch"));
        }
        // SSA-47
        Write::Patch(patch_type)
            if !matches!(patch_type, PatchType::Apply(_)) && query.has("force") =>
        {
            let why = "may not be specified for non-apply patch";
            errors.push(field::Error::forbidden(&Path::new("force"), why));
        }
        _ => {}
    }
    check_field_manager(manager, &mut errors);
    let dry_run = dry_run(&dry_run_values(query, warnings), &mut errors);
    let field_validation = field_validation(query.text("fieldValidation"), &mut errors);
    refuse(write.kind(), &errors)?;
    Ok(WriteOptions {
        dry_run,
        field_manager: manager.into(),
        field_validation,
        force: flag(query.get("force")),
    })
}

fn check_field_manager(manager: &str, errors: &mut field::Errors) {
    let path = Path::new("fieldManager");
    if manager.len() > FIELD_MANAGER_BYTES_MAX {
        errors.push(field::Error::too_long(&path, FIELD_MANAGER_BYTES_MAX));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !is_print(*c)) {
        if errors.is_full() {
            break;
        }
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(field::Error::invalid(&path, &Value::from(manager), why));
    }
}

/// The values of `dryRun` in a query. If all are empty, there is no dry run, as the API
/// documentation says; upstream's code differs (DRY-03). The client gets a warning, since it may
/// have meant a dry run.
fn dry_run_values<'q>(query: &'q Query, warnings: &Warnings) -> Vec<&'q str> {
    let values: Vec<&str> = query.all("dryRun").collect();
    if !values.is_empty() && values.iter().all(|value| value.is_empty()) {
        warnings.add("dryRun: an empty value is no dry run, the change is made; use \"All\"");
        return Vec::new();
    }
    values
}

/// Parses the values of `dryRun`. The only one is `All` (DRY-02).
fn dry_run(values: &[&str], errors: &mut field::Errors) -> bool {
    if values.iter().any(|value| *value != "All") {
        let found = Value::from(values.to_vec());
        errors.push(field::Error::not_supported(&Path::new("dryRun"), &found, &["All"]));
    }
    !values.is_empty()
}

fn field_validation(text: &str, errors: &mut field::Errors) -> Option<FieldValidation> {
    match text {
        "" => None,
        "Warn" => Some(FieldValidation::Warn),
        "Ignore" => Some(FieldValidation::Ignore),
        "Strict" => Some(FieldValidation::Strict),
        other => {
            // FV-11
            let supported = ["", "Ignore", "Strict", "Warn"];
            let path = Path::new("fieldValidation");
            errors.push(field::Error::not_supported(&path, &Value::from(other), &supported));
            None
        }
    }
}

/// The part of its object that a row of a Table includes (OAS-14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

/// Parses the options of Tables. Called only if a Table was negotiated.
pub(crate) fn table_options(query: &Query) -> Result<IncludeObject, Status> {
    match query.text("includeObject") {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "None" => Ok(IncludeObject::None),
        "Object" => Ok(IncludeObject::Object),
        other => {
            let why = "must be 'Metadata', 'Object', 'None', or empty";
            let path = Path::new("includeObject");
            let error = field::Error::invalid(&path, &Value::from(other), why);
            Err(Status::bad_request(format!("Unable to convert to Table as requested: {error}")))
        }
    }
}

/// Parses an optional integer.
pub(crate) fn integer(query: &Query, key: &str) -> Result<Option<i64>, Status> {
    query.get(key).map(parse_integer).transpose()
}

/// Parses an integer, or returns a 400 with the text of Go's `strconv`.
fn parse_integer(text: &str) -> Result<i64, Status> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        Status::bad_request(number_error("ParseInt", text, error.kind()))
    })
}

/// The text of the error that a function of Go's `strconv` returns for a text that is not a number.
pub(crate) fn number_error(function: &str, text: &str, kind: &std::num::IntErrorKind) -> String {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    let why = match kind {
        PosOverflow | NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {}: {why}", quote(text))
}

/// Returns 422 about the options, if there are errors.
fn refuse(kind: &str, errors: &[field::Error]) -> Result<(), Status> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(&GroupKind::new(META_GROUP, kind), "", errors))
    }
}

#[cfg(test)]
mod tests;
