//! Ownership from an object to its Scale and back: upstream's cases.

use pintle_value::{Str, Value, json, yaml};

use crate::server_side::ScaleOwnership;

/// A third version has the count at another path, and a fourth has no scale.
fn owners(check: impl FnOnce(ScaleOwnership<'_>)) {
    let name = Str::const_new;
    let usual = [name("spec"), name("replicas")];
    let replicas = [
        ("apps/v1".to_owned(), Some(&usual[..])),
        ("apps/v1beta2".to_owned(), Some(&usual[..])),
        ("apps/v1beta1".to_owned(), Some(&[name("spec"), name("count")][..])),
        ("apps/v1alpha1".to_owned(), None),
    ];
    check(ScaleOwnership {
        api_version: "apps/v1",
        scale_version: "autoscaling/v1",
        replicas: &replicas,
    });
}

/// An object with entries in the notation `manager operation version fields…`. A manager may be
/// `name/subresource`.
fn object(entries: &[&str]) -> Value {
    let entries = entries.iter().map(|entry| {
        let words: Vec<&str> = entry.split(' ').collect();
        let (manager, subresource) = words[0].split_once('/').unwrap_or((words[0], ""));
        let fields: Vec<String> =
            words[3..].iter().map(|field| format!("'f:{field}': {{}}")).collect();
        let text = format!(
            "{{manager: {manager}, operation: {}, apiVersion: {}, fieldsType: FieldsV1, \
             subresource: '{subresource}', fieldsV1: {{'f:spec': {{{}}}}}}}",
            words[1],
            words[2],
            fields.join(", ")
        );
        yaml::parse(text.as_bytes()).expect("an entry")
    });
    Value::from([("metadata", Value::from([("managedFields", entries.collect::<Vec<_>>())]))])
}

fn entries(object: &Value) -> Vec<String> {
    let mut object = object.clone();
    json::parse_raw(&mut object);
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    let entry = |entry: &Value| {
        let text = |member| entry.str_at(&[member]).unwrap_or_default();
        let slash = if text("subresource").is_empty() { "" } else { "/" };
        let fields = entry.at(&["fieldsV1", "f:spec"]).and_then(Value::as_object);
        let fields: Vec<&str> = fields
            .into_iter()
            .flat_map(|f| f.keys())
            .filter_map(|k| k.strip_prefix("f:"))
            .collect();
        format!(
            "{}{slash}{} {} {} {}",
            text("manager"),
            text("subresource"),
            text("operation"),
            text("apiVersion"),
            fields.join(" ")
        )
    };
    entries.unwrap_or_default().iter().map(entry).collect()
}

#[test]
fn a_scale_has_the_owners_of_the_replica_count() {
    let check = |of_object: &[&str], expected: &[&str]| {
        let mut scale = Value::object();
        owners(|owners| owners.to_scale(&object(of_object), &mut scale));
        assert_eq!(entries(&scale), expected, "{of_object:?}");
    };
    check(
        &["m1 Apply apps/v1 another", "m2 Apply apps/v1 replicas selector"],
        &["m2 Apply autoscaling/v1 replicas"],
    );
    check(
        &[
            "m1 Apply apps/v1 replicas",
            "m2 Update apps/v1 replicas",
            "m3/scale Apply apps/v1 replicas",
        ],
        &[
            "m1 Apply autoscaling/v1 replicas",
            "m3/scale Apply autoscaling/v1 replicas",
            "m2 Update autoscaling/v1 replicas",
        ],
    );
    check(&["m1 Apply apps/v10 replicas"], &[]);
    // Each version has its own path, or none.
    check(
        &[
            "m1 Apply apps/v1beta1 count",
            "m2 Apply apps/v1beta1 replicas",
            "m3 Apply apps/v1 count",
            "m4 Apply apps/v1alpha1 replicas",
        ],
        &["m1 Apply autoscaling/v1 replicas"],
    );
}

#[test]
fn the_replica_count_has_the_owners_of_the_scale() {
    let check = |of_object: &[&str], of_scale: &[&str], expected: &[&str]| {
        let mut object_ = object(of_object);
        owners(|owners| owners.to_object(&object(of_scale), &mut object_));
        assert_eq!(entries(&object_), expected, "{of_object:?} and {of_scale:?}");
    };
    // The owner is the writer of the Scale, with any name and operation.
    check(
        &["test Apply apps/v1 replicas selector"],
        &["scale/scale Update autoscaling/v1 replicas"],
        &["test Apply apps/v1 selector", "scale/scale Update apps/v1 replicas"],
    );
    check(
        &["test Update apps/v1 replicas selector"],
        &["scale/scale Apply autoscaling/v1 replicas"],
        &["scale/scale Apply apps/v1 replicas", "test Update apps/v1 selector"],
    );
    check(
        &["test Apply apps/v1 replicas selector"],
        &["test/scale Apply autoscaling/v1 replicas"],
        &["test Apply apps/v1 selector", "test/scale Apply apps/v1 replicas"],
    );
    check(
        &["test Update apps/v1 replicas selector"],
        &["test/scale Update autoscaling/v1 replicas"],
        &["test Update apps/v1 selector", "test/scale Update apps/v1 replicas"],
    );
    check(
        &["test Apply apps/v1 replicas"],
        &["scale/scale Update autoscaling/v1 replicas"],
        &["scale/scale Update apps/v1 replicas"],
    );
    // Other fields of a Scale have no owner.
    check(
        &["test Apply apps/v1 selector"],
        &["scale/scale Update autoscaling/v1 status"],
        &["test Apply apps/v1 selector"],
    );
    // An owner from before that is still an owner keeps its entry.
    check(
        &["test Apply apps/v1 replicas selector"],
        &["test Apply autoscaling/v1 replicas", "test/scale Apply autoscaling/v1 replicas"],
        &["test Apply apps/v1 replicas selector", "test/scale Apply apps/v1 replicas"],
    );
    check(
        &["test Update apps/v1 replicas selector"],
        &["test Update autoscaling/v1 replicas"],
        &["test Update apps/v1 replicas selector"],
    );
    // Each version has its own path, or none.
    check(
        &[
            "m1 Apply apps/v1beta1 count replicas",
            "m2 Apply apps/v1beta2 count replicas",
            "m3 Apply apps/v1alpha1 replicas",
        ],
        &["test/scale Update autoscaling/v1 replicas"],
        &[
            "m1 Apply apps/v1beta1 replicas",
            "m2 Apply apps/v1beta2 count",
            "m3 Apply apps/v1alpha1 replicas",
            "test/scale Update apps/v1 replicas",
        ],
    );
    // Entries of versions that are not served any more are dropped.
    check(&["test Apply apps/v10 selector"], &[], &[]);
}
