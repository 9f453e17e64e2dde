//! Events of both groups. They are the same objects (EVT-07), stored in the form of the core group.

use pintle_meta::{
    field::{Error, Errors},
    names,
};
use pintle_registry::{Dependents, NameRule};
use pintle_value::{Path, Str, Value};

use crate::{
    checks::{Frozen, IMMUTABLE, frozen, invalid_text, path, same, unchanged},
    conversion::event::{from_core, to_core},
    kind::{Collection, Form, Kind, kind},
    strategy::{AS_UPDATE, NOT_CHECKED, PLAIN, Strategy, selectable, text},
};

pub(crate) const KINDS: &[Kind] = &[Kind {
    collection: Collection::Shared("events"),
    conversions: &[Form { version: "v1", to_stored: to_core, from_stored: from_core }],
    ..kind("events.k8s.io", "events", EVENT)
}];

/// One hour, the default of `--event-ttl`.
const TTL_SECONDS: u64 = 3600;

/// The events of the core group, which have few rules.
pub(super) const CORE_EVENT: Strategy = Strategy {
    metadata: NOT_CHECKED,
    name: NameRule::PathSegment,
    dependents: Dependents::None,
    create_on_update: true,
    ttl_seconds: Some(TTL_SECONDS),
    fields: &[
        selectable!("involvedObject.kind" at "involvedObject"."kind"),
        selectable!("involvedObject.namespace" at "involvedObject"."namespace"),
        selectable!(selective "involvedObject.name" at "involvedObject"."name"),
        selectable!(selective "involvedObject.uid" at "involvedObject"."uid"),
        selectable!("involvedObject.apiVersion" at "involvedObject"."apiVersion"),
        selectable!("involvedObject.resourceVersion" at "involvedObject"."resourceVersion"),
        selectable!("involvedObject.fieldPath" at "involvedObject"."fieldPath"),
        selectable!("reason" at "reason"),
        selectable!("reportingComponent" at "reportingComponent"),
        selectable!("source" by source, of "source"."component", of "reportingComponent"),
        selectable!("type" at "type"),
    ],
    validate: |new, _| {
        let mut errors = Errors::new();
        check(new, "reportingComponent", &mut errors);
        errors
    },
    ..PLAIN
};

/// The events of `events.k8s.io`, which must be complete and of which only `series` may change
/// (EVT-05, EVT-06).
const EVENT: Strategy = Strategy {
    metadata: AS_UPDATE,
    name: NameRule::DnsSubdomain,
    dependents: Dependents::None,
    fields: &[
        selectable!("regarding.kind" at "involvedObject"."kind"),
        selectable!("regarding.namespace" at "involvedObject"."namespace"),
        selectable!(selective "regarding.name" at "involvedObject"."name"),
        selectable!(selective "regarding.uid" at "involvedObject"."uid"),
        selectable!("regarding.apiVersion" at "involvedObject"."apiVersion"),
        selectable!("regarding.resourceVersion" at "involvedObject"."resourceVersion"),
        selectable!("regarding.fieldPath" at "involvedObject"."fieldPath"),
        selectable!("reason" at "reason"),
        selectable!("reportingController" at "reportingComponent"),
        // This group does not offer the field, but shares an index with the core group, which does.
        selectable!("" by source, of "source"."component", of "reportingComponent"),
        selectable!("type" at "type"),
    ],
    validate: |new, old| {
        let mut errors = Errors::new();
        check(new, "reportingController", &mut errors);
        match old {
            None => check_new(new, &mut errors),
            Some(old) => {
                if !same(new.get("series"), old.get("series")) {
                    check_series(new, &mut errors);
                }
                errors.extend(unchanged(new, Some(old), FROZEN));
                // As in upstream, the path has the member's name in this group.
                if !same(new.get("reportingComponent"), old.get("reportingComponent")) {
                    let new = new.get("reportingComponent").unwrap_or(&Value::Null);
                    let path = Path::new("reportingController");
                    errors.push(Error::invalid(&path, new, IMMUTABLE));
                }
                errors.extend(unchanged(new, Some(old), &[frozen(&["reportingInstance"])]));
            }
        }
        errors
    },
    ..CORE_EVENT
};

const FROZEN: &[Frozen] = &[
    frozen(&["involvedObject"]),
    frozen(&["reason"]),
    frozen(&["message"]),
    frozen(&["source"]),
    frozen(&["firstTimestamp"]),
    frozen(&["lastTimestamp"]),
    frozen(&["count"]),
    // Upstream checks the reason twice.
    frozen(&["reason"]),
    frozen(&["type"]),
    frozen(&["eventTime"]),
    frozen(&["action"]),
    frozen(&["related"]),
];

/// The component, from the old member or the new one.
fn source(event: &Value) -> Str {
    let component = text(event, &["source", "component"]);
    if component.is_empty() { text(event, &["reportingComponent"]) } else { component }
}

/// The rules of every event: it is in its object's namespace, and if it has `eventTime`, it has the
/// other members of `events.k8s.io`, too. The reporting controller's member has another name in
/// each group.
fn check(event: &Value, controller: &str, errors: &mut Errors) {
    let of = |member| event.str_at(&[member]).unwrap_or_default();
    let namespace = pintle_meta::object::namespace(event);
    let about = ["involvedObject", "namespace"];
    let involved = event.str_at(&about).unwrap_or_default();
    let is_new = is_set(event, "eventTime");
    let fits = match (involved.is_empty(), is_new) {
        (true, true) => matches!(namespace, "default" | "kube-system"),
        (true, false) => matches!(namespace, "" | "default"),
        (false, true) => true,
        (false, false) => namespace == involved,
    };
    if !fits {
        let words = "does not match event.namespace";
        errors.push(Error::invalid(&path(&about), &Value::from(involved), words));
    }
    if !is_new {
        return;
    }
    let reporter = of("reportingComponent");
    if reporter.is_empty() {
        errors.push(Error::required(&Path::new(controller), ""));
    }
    invalid_text(&Path::new(controller), reporter, names::qualified_name(reporter), errors);
    for (member, length_max) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        if of(member).is_empty() {
            errors.push(Error::required(&Path::new(member), ""));
        }
        check_length(member, of(member), length_max, errors);
    }
    check_length("message", of("message"), 1024, errors);
}

fn check_length(member: &str, text: &str, length_max: usize, errors: &mut Errors) {
    if text.len() > length_max {
        let words = format!("can have at most {length_max} characters");
        errors.push(Error::invalid(&Path::new(member), &Value::from(""), words));
    }
}

/// The rules of new events of `events.k8s.io`; the paths are those of the core group.
fn check_new(event: &Value, errors: &mut Errors) {
    check_series(event, errors);
    if !is_set(event, "eventTime") {
        errors.push(Error::required(&Path::new("eventTime"), ""));
    }
    let kind = event.str_at(&["type"]).unwrap_or_default();
    if !matches!(kind, "Normal" | "Warning") {
        let words = format!("has invalid value: {kind}");
        errors.push(Error::invalid(&Path::new("type"), &Value::from(""), words));
    }
    let filled = |member: &&str| match event.get(member) {
        Some(Value::Object(members)) => members.values().any(|v| v.as_str() != Some("")),
        Some(Value::Int(count)) => *count != 0,
        other => other.is_some_and(|value| !value.is_null()),
    };
    let old = ["firstTimestamp", "lastTimestamp", "count", "source"];
    for member in old.iter().filter(|member| filled(member)) {
        let path = Path::new(member);
        errors.push(Error::invalid(&path, &Value::from(""), "needs to be unset"));
    }
}

fn check_series(event: &Value, errors: &mut Errors) {
    let Some(series) = event.get("series").filter(|series| !series.is_null()) else { return };
    if series.get("count").and_then(Value::as_int).unwrap_or(0) < 2 {
        let path = Path::new("series").field("count");
        errors.push(Error::invalid(&path, &Value::from(""), "should be at least 2"));
    }
    if !is_set(series, "lastObservedTime") {
        errors.push(Error::required(&Path::new("series").field("lastObservedTime"), ""));
    }
}

fn is_set(object: &Value, member: &str) -> bool {
    object.get(member).is_some_and(|value| !value.is_null())
}
