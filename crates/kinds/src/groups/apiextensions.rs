//! `apiextensions.k8s.io/v1`. That a definition makes a resource is `pintle-crd`'s matter.

use pintle_meta::{
    field::{Error, Errors},
    object,
};
use pintle_registry::NameRule;
use pintle_value::{Map, Path, Value};

use crate::{
    checks::items,
    defaults::{
        Constant::{Int, Made},
        Defaults,
        Row::{At, Do, In, Unset},
        is_filled, set,
    },
    kind::{Kind, kind},
    strategy::{COUNTED_WITH_STATUS, Strategy},
};

pub(crate) const KINDS: &[Kind] =
    &[kind("apiextensions.k8s.io", "customresourcedefinitions", DEFINITION)];

const DEFINITION: Strategy = Strategy {
    // Its own finalizer has no domain; upstream's rule for it is the one of custom resources.
    qualified_finalizers: false,
    name: NameRule::PathSegment,
    unconditional_update: false,
    default: |object| set(object, DEFAULTS),
    prepare_create: |definition| {
        let stored: Vec<Value> = storage_version(definition).into_iter().collect();
        definition.object_entry("status").insert("storedVersions", stored);
    },
    prepare_update: |new, _| {
        let Some(version) = storage_version(new) else { return };
        let status = new.object_entry("status");
        let stored = status.entry_or("storedVersions", || Value::Array(Vec::new()));
        if let Value::Array(stored) = stored
            && !stored.contains(&version)
        {
            stored.push(version);
        }
    },
    // The first deletion only begins: the objects go first.
    held: |definition| !object::is_terminating(definition),
    terminating: pintle_crd::life::begin_deletion,
    validate: |new, old| {
        let of = |path: &[&str]| new.str_at(path).unwrap_or_default();
        let required = format!("{}.{}", of(&["spec", "names", "plural"]), of(&["spec", "group"]));
        let mut errors = Errors::new();
        if object::name(new) != required {
            let path = Path::new("metadata").field("name");
            let words = r#"must be spec.names.plural+"."+spec.group"#;
            errors.push(Error::invalid(&path, &Value::from(object::name(new)), words));
        }
        errors.extend(pintle_crd::validate(new, old));
        errors
    },
    warnings: pintle_crd::warnings,
    ..COUNTED_WITH_STATUS
};

const DEFAULTS: Defaults = &[In(
    "spec",
    &[
        In("names", &[Do(names_from_kind)]),
        Unset("conversion", Made(|| Value::from([("strategy", "None")]))),
        At(
            "conversion",
            &[At("webhook", &[At("clientConfig", &[At("service", &[Unset("port", Int(443))])])])],
        ),
    ],
)];

fn names_from_kind(names: &mut Map) {
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !is_filled(names, "singular") {
        names.insert("singular", kind.to_lowercase());
    }
    if !is_filled(names, "listKind") && !kind.is_empty() {
        names.insert("listKind", format!("{kind}List"));
    }
}

/// The name of the version in which custom resources are kept.
fn storage_version(definition: &Value) -> Option<Value> {
    let versions = items(definition, &["spec", "versions"]);
    let is_storage =
        |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    versions.iter().find(is_storage)?.get("name").cloned()
}
