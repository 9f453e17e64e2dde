//! The options of a pod's log, as they stand in the URL: `PodLogOptions`.

use pintle_meta::field;
use pintle_meta::{GroupKind, Status, time};
use pintle_value::{Path, Value};

use crate::options::integer;
use crate::query::Query;

/// Refuses options that make no sense, in the words in which upstream reads and validates them.
pub(super) fn check_options(query: &Query, pod: &str) -> Result<(), Status> {
    let since_seconds = integer(query, "sinceSeconds")?;
    let since_time = query.get("sinceTime").filter(|said| !said.is_empty());
    if let Some(text) = since_time {
        time::parse(text).map_err(|why| Status::bad_request(why.to_string()))?;
    }
    let tail_lines = integer(query, "tailLines")?;
    let limit_bytes = integer(query, "limitBytes")?;

    let at_least = |name: &str, number: Option<i64>, least: i64, why: &str| {
        let number = number.filter(|number| *number < least)?;
        Some(field::Error::invalid(&Path::new(name), &Value::Int(number), why))
    };
    let mut errors = field::Errors::default();
    errors.extend(at_least("tailLines", tail_lines, 0, "must be greater than or equal to 0"));
    errors.extend(at_least("limitBytes", limit_bytes, 1, "must be greater than 0"));
    if since_seconds.is_some() && since_time.is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(field::Error::forbidden(&Path::new("[]"), why));
    } else {
        errors.extend(at_least("sinceSeconds", since_seconds, 1, "must be greater than 0"));
    }
    // Streams can be told apart behind a gate that is off.
    if query.has("stream") {
        errors.push(field::Error::forbidden(&Path::new("stream"), "may not be specified"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&GroupKind::new("", "PodLogOptions"), pod, &errors))
}
