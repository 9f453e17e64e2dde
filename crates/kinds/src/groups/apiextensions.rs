//! `apiextensions.k8s.io/v1`. `pintle-crd` turns a definition into a resource.

use pintle_meta::{names, object};
use pintle_registry::{Deletion, NameRule};
use pintle_value::{Map, Value};

use crate::{
    checks::items,
    defaults::{
        Constant::{Int, Made},
        Defaults,
        Row::{At, Do, In, Unset},
        is_filled, set,
    },
    kind::{Kind, kind},
    strategy::{AS_UPDATE, COUNTED_WITH_STATUS, MetadataChecks, Part, Strategy, part},
};

pub(crate) const KINDS: &[Kind] =
    &[kind("apiextensions.k8s.io", "customresourcedefinitions", DEFINITION)];

const DEFINITION: Strategy = Strategy {
    metadata: MetadataChecks { qualified_finalizers: false, ..AS_UPDATE },
    // The server's own finalizer has no domain. As in upstream, the rule for finalizers is that of
    // custom resources.
    name: NameRule::OfObject(|new, old, name, prefix| {
        let mut wrong = names::subdomain_rule(name, prefix);
        let of = |path: &[&str]| new.str_at(path).unwrap_or_default();
        let needed = format!("{}.{}", of(&["spec", "names", "plural"]), of(&["spec", "group"]));
        // Group and plural name are immutable, and a change of them is reported as such.
        if old.is_none() && name != needed {
            wrong.push(r#"must be spec.names.plural+"."+spec.group"#.to_owned());
        }
        wrong
    }),
    unconditional_update: false,
    declared_rules: false,
    default: |definition| {
        set(definition, DEFAULTS);
        let stored = definition.at(&["status", "storedVersions"]).and_then(Value::as_array);
        if stored.is_none_or(<[Value]>::is_empty)
            && let Some(version) = storage_version(definition)
        {
            definition.object_entry("status").insert("storedVersions", vec![version]);
        }
    },
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
    // The first deletion only marks the definition, because its custom resources are deleted first.
    deletion: Deletion::MarkOnly,
    held: |definition| !object::is_terminating(definition),
    terminating: pintle_crd::lifecycle::begin_deletion,
    validate: pintle_crd::validate,
    parts: &[Part { validate: |new, _| pintle_crd::validate_status(new), ..part("status") }],
    is_expensive: true,
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
            &[
                Do(drop_empty_webhook),
                At("webhook", &[At("clientConfig", &[At("service", &[Unset("port", Int(443))])])]),
            ],
        ),
    ],
)];

/// Removes a webhook that has no client and no versions: upstream's internal type has both in the
/// conversion itself.
fn drop_empty_webhook(conversion: &mut Map) {
    let Some(webhook) = conversion.get("webhook") else { return };
    let versions = webhook.get("conversionReviewVersions").and_then(Value::as_array);
    let has_client = webhook.get("clientConfig").is_some_and(|client| !client.is_null());
    if !has_client && versions.is_none_or(<[Value]>::is_empty) {
        conversion.remove("webhook");
    }
}

pub(crate) fn names_from_kind(names: &mut Map) {
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !is_filled(names, "singular") {
        names.insert("singular", lower(&kind));
    }
    if !is_filled(names, "listKind") && !kind.is_empty() {
        names.insert("listKind", format!("{kind}List"));
    }
}

/// Lowercases each character to one character, as Go does: `İ` becomes `i`, and `Σ` at the end of a
/// word `σ`.
fn lower(text: &str) -> String {
    text.chars().filter_map(|c| c.to_lowercase().next()).collect()
}

/// The name of the version in which custom resources are stored.
fn storage_version(definition: &Value) -> Option<Value> {
    let versions = items(definition, &["spec", "versions"]);
    let is_storage =
        |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    versions.iter().find(is_storage)?.get("name").cloned()
}
