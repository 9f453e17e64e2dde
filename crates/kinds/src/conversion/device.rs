//! `resource.k8s.io/v1beta1`, where devices and requests for devices are nested the other way round
//! than in v1.

use pintle_value::{Map, Value};

use super::set_api_version;

const STORED: &str = "resource.k8s.io/v1";
const BETA: &str = "resource.k8s.io/v1beta1";

/// Converts a ResourceClaim to v1.
pub(crate) fn claim_to_v1(claim: &mut Value) {
    set_api_version(claim, STORED);
    each(claim, &["spec", "devices", "requests"], request_to_v1);
}

/// Converts a ResourceClaim from v1.
pub(crate) fn claim_from_v1(claim: &mut Value) {
    set_api_version(claim, BETA);
    each(claim, &["spec", "devices", "requests"], request_from_v1);
}

/// Converts a ResourceClaimTemplate to v1.
pub(crate) fn template_to_v1(template: &mut Value) {
    set_api_version(template, STORED);
    each(template, &["spec", "spec", "devices", "requests"], request_to_v1);
}

/// Converts a ResourceClaimTemplate from v1.
pub(crate) fn template_from_v1(template: &mut Value) {
    set_api_version(template, BETA);
    each(template, &["spec", "spec", "devices", "requests"], request_from_v1);
}

/// Converts a ResourceSlice to v1.
pub(crate) fn slice_to_v1(slice: &mut Value) {
    set_api_version(slice, STORED);
    each(slice, &["spec", "devices"], |device| lift(device, "basic"));
}

/// Converts a ResourceSlice from v1.
pub(crate) fn slice_from_v1(slice: &mut Value) {
    set_api_version(slice, BETA);
    each(slice, &["spec", "devices"], |device| sink(device, "basic", &["name"]));
}

/// Puts the members of a request for one kind of device into `exactly`. A request with alternatives
/// gets no `exactly`, although v1beta1 shows an empty `deviceClassName` in it.
fn request_to_v1(request: &mut Map) {
    sink(request, "exactly", &["name", "firstAvailable"]);
    let is_set =
        |value: &Value| !matches!(value, Value::Null | Value::Int(0)) && value.as_str() != Some("");
    let asks = request.get("exactly").and_then(Value::as_object);
    if !asks.is_some_and(|asks| asks.values().any(is_set)) {
        request.remove("exactly");
    }
}

fn request_from_v1(request: &mut Map) {
    lift(request, "exactly");
    request.entry_or("deviceClassName", || "".into());
}

/// Moves a member's members up to the object, and removes the member.
fn lift(object: &mut Map, member: &str) {
    if let Some(Value::Object(members)) = object.remove(member) {
        for (name, value) in members {
            object.insert(name, value);
        }
    }
}

/// Puts all members but some into a new member.
fn sink(object: &mut Map, member: &str, but: &[&str]) {
    let mut sunk = Map::new();
    for (name, value) in std::mem::take(object) {
        let stays = but.contains(&name.as_str());
        if stays {
            object.insert(name, value)
        } else {
            sunk.insert(name, value)
        };
    }
    object.insert(member, sunk);
}

/// Changes each item of a list.
fn each(object: &mut Value, path: &[&str], change: fn(&mut Map)) {
    let list = path.iter().try_fold(object, |node, member| node.get_mut(member));
    let items = list.and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(change);
}
