//! Tests of the kinds: rows of data, extracted facts of upstream if they are present, and
//! properties of every entry.

mod cases;
mod conversions;
mod defaults;
mod definitions;
mod large;
mod preparation;
mod properties;
mod removed;
mod rows;
mod validation;

use crate::strategy::Strategy;
use pintle_value::Value;

use crate::groups;

fn json(text: &str) -> Value {
    pintle_value::json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// `apps/deployments`, or `pods` in the core group.
fn strategy(resource: &str) -> &'static Strategy {
    let (group, plural) = resource.rsplit_once('/').unwrap_or(("", resource));
    &groups::find(group, plural).unwrap_or_else(|| panic!("no entry for {resource}")).strategy
}

/// A file of the extracted facts, if they are present.
fn fact(path: &str) -> Option<Value> {
    let file = format!("{}/../../../shared/{path}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(file).ok()?;
    Some(pintle_value::json::parse(&bytes).expect("the facts are JSON"))
}
