//! Events, in the form of the core group; those of `events.k8s.io` are converted first.

use std::borrow::Cow;

use pintle_registry::table::Cell;
use pintle_value::Value;

use super::column::Cell::{By, ByTime, Text};
use super::column::Description::Field;
use super::column::{NAME_TEXT, string};
use super::read::{at, has, int_at, str_at, time_at};
use super::text::{age, filled};
use super::{Columns, Kind};
use crate::conversion::event::to_core;

pub(super) const KINDS: &[Kind] = &[
    Kind::new("", "Event", COLUMNS),
    Kind::new("events.k8s.io", "Event", COLUMNS).with_form(in_core_words),
];

const COLUMNS: Columns = &[
    string("Last Seen", ByTime(last_seen), Field("core.v1.Event", "lastTimestamp")),
    string("Type", Text("type"), Field("core.v1.Event", "type")),
    string("Reason", Text("reason"), Field("core.v1.Event", "reason")),
    string("Object", By(object), Field("core.v1.Event", "involvedObject")),
    string(
        "Subobject",
        Text("involvedObject.fieldPath"),
        Field("core.v1.ObjectReference", "fieldPath"),
    )
    .wide(),
    string("Source", By(source), Field("core.v1.Event", "source")).wide(),
    string("Message", By(message), Field("core.v1.Event", "message")),
    string("First Seen", ByTime(first_seen), Field("core.v1.Event", "firstTimestamp")).wide(),
    string("Count", By(count), Field("core.v1.Event", "count")).wide(),
    string("Name", Text("metadata.name"), NAME_TEXT).named().wide(),
];

/// An event of `events.k8s.io` in the form of the core group; an event in that form stays as it is.
fn in_core_words(event: &Value) -> Cow<'_, Value> {
    let mut event = event.clone();
    to_core(&mut event);
    Cow::Owned(event)
}

fn first_seen(event: &Value) -> Cell {
    age(time_at(event, "firstTimestamp").or_else(|| time_at(event, "eventTime")))
}

fn last_seen(event: &Value) -> Cell {
    if has(event, "series") {
        return age(time_at(event, "series.lastObservedTime"));
    }
    match time_at(event, "lastTimestamp") {
        Some(last) => age(Some(last)),
        None => first_seen(event),
    }
}

fn object(event: &Value) -> Value {
    let kind = str_at(event, "involvedObject.kind").to_lowercase();
    match str_at(event, "involvedObject.name") {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn source(event: &Value) -> Value {
    let component = filled(str_at(event, "source.component"), str_at(event, "reportingComponent"));
    match filled(str_at(event, "source.host"), str_at(event, "reportingInstance")) {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}

fn message(event: &Value) -> Value {
    str_at(event, "message").trim().into()
}

/// How often the event was observed: once if it has neither a series nor a count, like an event of
/// events.k8s.io that is not repeated.
fn count(event: &Value) -> Value {
    match at(event, "series") {
        Some(series) => int_at(series, "count").into(),
        None if int_at(event, "count") == 0 => 1_i64.into(),
        None => int_at(event, "count").into(),
    }
}
