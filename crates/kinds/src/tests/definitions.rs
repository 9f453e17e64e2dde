use std::collections::BTreeSet;

use pintle_meta::GroupVersionResource;
use pintle_registry::Strategy as _;
use pintle_registry::{Generation, Owned, ResourceDefinition, SubresourceBehaviour};
use pintle_value::Value;

use super::fact;
use crate::{
    Error, Feature, RuntimeConfig, definitions, generated, groups, kind::Collection,
    strategy::Strategy,
};

fn config(flag: &str) -> RuntimeConfig {
    RuntimeConfig::parse([flag]).unwrap_or_else(|error| panic!("{flag}: {error}"))
}

fn everything() -> Vec<ResourceDefinition> {
    definitions(&RuntimeConfig::everything())
}

fn find<'a>(all: &'a [ResourceDefinition], name: &str) -> Option<&'a ResourceDefinition> {
    let (group_version, resource) = name.rsplit_once('/').unwrap_or(("", name));
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let name = GroupVersionResource::new(group, version, resource);
    all.iter().find(|definition| definition.resource == name)
}

#[test]
fn resources_of_the_table_equal_the_entries() {
    let rows: BTreeSet<_> = generated::resources().iter().map(|r| (r.group, r.plural)).collect();
    let kinds: Vec<_> = groups::all().map(|kind| (kind.group, kind.resource)).collect();
    assert_eq!(rows, kinds.iter().copied().collect());
    assert_eq!(rows.len(), kinds.len(), "an entry occurs twice");
    assert_eq!(everything().len(), generated::resources().len());
}

/// Every version of a resource but the stored one has a conversion (DEP-03).
#[test]
fn the_versions_of_a_resource_share_one_stored_form() {
    for kind in groups::all() {
        let rows = generated::resources().iter();
        for row in rows.filter(|r| (r.group, r.plural) == (kind.group, kind.resource)) {
            let has_form = kind.conversions.iter().any(|form| form.version == row.version);
            let stored = row.storage.map(|s| (s.group, s.version));
            let needs_form = stored.is_some_and(|stored| stored != (row.group, row.version));
            assert_eq!(has_form, needs_form, "{}/{} {}", row.group, row.version, row.plural);
            assert_eq!(
                kind.collection == Collection::None,
                row.storage.is_none(),
                "{}",
                row.plural
            );
        }
    }
    for definition in everything() {
        let Some(storage) = &definition.storage else { continue };
        let stored = definition.schema.get(definition.stored_type());
        let is_own = definition.ty == definition.stored_type();
        assert_eq!(is_own, storage.conversion.is_none(), "{}", stored.name);
    }
}

#[test]
fn collections_are_named_for_resources_and_shared_by_versions() {
    let all = everything();
    let collection = |name: &str| {
        let storage = find(&all, name).and_then(|definition| definition.storage.as_ref());
        storage.map(|storage| storage.collection.to_string())
    };
    for (resource, expected) in [
        ("v1/pods", Some("pods")),
        ("apps/v1/deployments", Some("apps/deployments")),
        ("autoscaling/v1/horizontalpodautoscalers", Some("autoscaling/horizontalpodautoscalers")),
        ("autoscaling/v2/horizontalpodautoscalers", Some("autoscaling/horizontalpodautoscalers")),
        ("v1/events", Some("events")),
        ("events.k8s.io/v1/events", Some("events")),
        ("v1/bindings", None),
        ("v1/componentstatuses", None),
        ("authentication.k8s.io/v1/tokenreviews", None),
        ("authorization.k8s.io/v1/subjectaccessreviews", None),
    ] {
        assert_eq!(collection(resource).as_deref(), expected, "{resource}");
    }
}

#[test]
fn errors_name_keys_as_etcd_has_them() {
    let all = everything();
    for (resource, namespace, expected) in [
        ("v1/configmaps", "t", "/registry/configmaps/t/a"),
        ("apps/v1/deployments", "t", "/registry/deployments/t/a"),
        ("v1/services", "t", "/registry/services/specs/t/a"),
        ("v1/nodes", "", "/registry/minions/a"),
        ("events.k8s.io/v1/events", "t", "/registry/events/t/a"),
        (
            "apiregistration.k8s.io/v1/apiservices",
            "",
            "/registry/apiregistration.k8s.io/apiservices/a",
        ),
    ] {
        let definition = find(&all, resource).expect(resource);
        assert_eq!(definition.etcd_key(namespace, "a"), expected);
    }
}

#[test]
fn subresources_behave_by_their_names() {
    let all = everything();
    let behaviour = |resource: &str, name: &str| {
        let definition = find(&all, resource).unwrap_or_else(|| panic!("{resource}"));
        let sub = definition.subresource(name).unwrap_or_else(|| panic!("{resource}/{name}"));
        sub.behaviour.clone()
    };
    let part = |members| SubresourceBehaviour::Part(members);
    let csr = "certificates.k8s.io/v1/certificatesigningrequests";
    assert_eq!(behaviour("v1/pods", "status"), part(&[&["status"]]));
    assert_eq!(
        behaviour("v1/pods", "ephemeralcontainers"),
        part(&[&["spec", "ephemeralContainers"]])
    );
    assert_eq!(behaviour(csr, "approval"), part(&[&["status", "conditions"]]));
    assert_eq!(behaviour("v1/namespaces", "finalize"), part(&[&["spec"]]));
    for resource in [
        "apps/v1/deployments",
        "apps/v1/replicasets",
        "apps/v1/statefulsets",
        "v1/replicationcontrollers",
    ] {
        let scale = behaviour(resource, "scale");
        assert!(matches!(scale, SubresourceBehaviour::Scale(_)), "{resource}");
    }
    for name in ["attach", "binding", "eviction", "exec", "log", "portforward", "proxy"] {
        assert_eq!(behaviour("v1/pods", name), SubresourceBehaviour::Unserved, "{name}");
    }
    assert_eq!(behaviour("v1/serviceaccounts", "token"), SubresourceBehaviour::Token);
}

#[test]
fn deprecated_resources_have_warnings() {
    let all = everything();
    for (resource, expected) in [
        ("v1/pods", None),
        ("v1/componentstatuses", Some("v1 ComponentStatus is deprecated in v1.19+")),
        (
            "v1/endpoints",
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ),
        (
            "storage.k8s.io/v1beta1/volumeattributesclasses",
            Some(
                "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable \
                 in v1.37+; use storage.k8s.io/v1 VolumeAttributesClass",
            ),
        ),
        (
            "networking.k8s.io/v1beta1/ipaddresses",
            Some(
                "networking.k8s.io/v1beta1 IPAddress is deprecated in v1.34+, unavailable in v1.37+",
            ),
        ),
        ("autoscaling/v1/horizontalpodautoscalers", None),
    ] {
        let definition = find(&all, resource).unwrap_or_else(|| panic!("{resource}"));
        let warning = definition.deprecation.as_ref().map(|found| found.warning.as_str());
        assert_eq!(warning, expected, "{resource} (DEP-12)");
    }
}

#[test]
fn the_runtime_config_switches_versions_and_resources() {
    const PODS: &str = "v1/pods";
    const DEPLOYMENTS: &str = "apps/v1/deployments";
    const REPLICA_SETS: &str = "apps/v1/replicasets";
    const BETA: &str = "resource.k8s.io/v1beta1/resourceclaims";
    const ALPHA: &str = "internal.apiserver.k8s.io/v1alpha1/storageversions";
    for (flag, on, off) in [
        ("", &[PODS, DEPLOYMENTS][..], &[BETA, ALPHA][..]), // GRP-06, GRP-07
        ("api/beta=true", &[PODS, BETA], &[ALPHA]),
        ("api/alpha", &[PODS, ALPHA], &[BETA]), // GRP-09
        ("api/all=true", &[PODS, BETA, ALPHA], &[]),
        ("api/all=true,api/alpha=false", &[PODS, BETA], &[ALPHA]),
        ("resource.k8s.io/v1beta1", &[PODS, BETA], &[ALPHA]),
        ("apps/v1=false", &[PODS], &[DEPLOYMENTS, REPLICA_SETS]),
        ("apps/v1/deployments=false", &[PODS, REPLICA_SETS], &[DEPLOYMENTS]), // GRP-10
        ("apps/v1=false,apps/v1/deployments=true", &[DEPLOYMENTS], &[REPLICA_SETS]),
        ("api/ga=false,apps/v1=true", &[DEPLOYMENTS], &[PODS]),
        ("v1=false", &[DEPLOYMENTS], &[PODS]),
        ("api/all=false, api/v1=true", &[PODS], &[DEPLOYMENTS]),
        ("apps/v1=true,apps/v1=false", &[PODS], &[DEPLOYMENTS]),
        // The migration guide's example (MIG-43) names versions that are no longer served.
        ("admissionregistration.k8s.io/v1beta1=false,apiextensions.k8s.io/v1beta1", &[PODS], &[]),
        ("batch/v1beta1,extensions/v1beta1,admission.k8s.io/v1=false", &[PODS], &[]),
    ] {
        let all = definitions(&config(flag));
        for name in on {
            assert!(find(&all, name).is_some(), "{flag:?} should serve {name}");
        }
        for name in off {
            assert!(find(&all, name).is_none(), "{flag:?} should not serve {name}");
        }
    }
}

#[test]
fn the_most_specific_key_switches_a_resource_off() {
    for (flag, expected) in [
        ("", None),
        ("apps/v1/deployments=false,apps/v1=true", Some("apps/v1/deployments")),
        ("apps/v1=false,api/ga=true", Some("apps/v1")),
        ("apps/v1/daemonsets=false,apps/v1/deployments=true,apps/v1=false", None),
        ("api/ga=false,api/all=true", Some("api/ga")),
        ("api/all=false,v1=true", Some("api/all")),
        ("api/all=false,api/ga=true", None),
        ("api/beta=false", None),
    ] {
        let found = config(flag).disabling_key("apps", "v1", "deployments");
        assert_eq!(found.as_deref(), expected, "{flag}");
    }
}

/// Upstream responds 404 for such a resource, even if `--runtime-config` enables its version.
#[test]
fn a_resource_of_a_feature_that_is_off_is_not_served() {
    const BUNDLES: &str = "certificates.k8s.io/v1beta1/clustertrustbundles";
    const WORKLOADS: &str = "scheduling.k8s.io/v1alpha2/workloads";
    let all = config("api/all=true");
    assert!(find(&definitions(&all), BUNDLES).is_none());
    let with = |feature| definitions(&all.clone().with([feature].into_iter().collect()));
    let bundles = with(Feature::ClusterTrustBundle);
    assert!(find(&bundles, BUNDLES).is_some() && find(&bundles, WORKLOADS).is_none());
    assert!(find(&with(Feature::GenericWorkload), WORKLOADS).is_some());
    let quiet = RuntimeConfig::default().with(Feature::ALL.into_iter().collect());
    assert!(find(&definitions(&quiet), BUNDLES).is_none(), "a beta version is off by default");
}

#[test]
fn a_wrong_runtime_config_is_refused() {
    for (flag, expected) in [
        ("apps/v9=true", Error::Version("apps/v9".into())),
        ("batch/v2alpha2", Error::Version("batch/v2alpha2".into())),
        ("extensions/v9", Error::Version("extensions/v9".into())),
        ("v2=true", Error::Version("v2".into())),
        ("policy.example/v1=true", Error::Group("policy.example/v1".into())),
        ("api/beta=maybe", Error::Value { key: "api/beta".into(), value: "maybe".into() }),
        ("apps/v1=yes", Error::Value { key: "apps/v1".into(), value: "yes".into() }),
        ("a/b/c/d", Error::Key("a/b/c/d".into())),
        (
            "apps/v1/Deployments",
            Error::Resource { key: "apps/v1/Deployments".into(), resource: "Deployments".into() },
        ),
        ("api/all=false", Error::Nothing),
    ] {
        assert_eq!(RuntimeConfig::parse([flag]), Err(expected), "{flag}");
    }
}

/// The strategies agree with the facts about upstream's (STRAT-01, STRAT-02, STRAT-03).
#[test]
fn strategies_agree_with_the_facts() {
    let Some(facts) = fact("reference/v1.36/strategies.json") else { return };
    let truth = |entry: &Value, path: &[&str]| entry.at(path).and_then(Value::as_bool);
    let mut seen = 0;
    for (key, entry) in facts.as_object().expect("an object").iter() {
        let Some((group, resource)) = key.split_once('/') else { continue };
        let kind = groups::find(group, resource).unwrap_or_else(|| panic!("{key}"));
        let strategy = &kind.strategy;
        let Some(create_on_update) = truth(entry, &["allowCreateOnUpdate"]) else {
            assert_eq!(kind.collection, Collection::None, "{key}");
            continue;
        };
        seen += 1;
        assert_eq!(strategy.create_on_update, create_on_update, "{key} create on update");
        let unconditional = truth(entry, &["allowUnconditionalUpdate"]);
        assert_eq!(Some(strategy.unconditional_update), unconditional, "{key} unconditional");
        let returns = truth(entry, &["delete", "returnDeletedObject"]);
        assert_eq!(Some(strategy.delete_returns_object), returns, "{key} returns deleted");
        let graceful = entry.str_at(&["delete", "graceful"]).unwrap_or_default();
        assert_eq!(strategy.graceful.is_some(), graceful.starts_with("graceful"), "{key} graceful");
        assert_eq!(strategy.ttl_seconds.is_some(), entry.str_at(&["ttl"]).is_some(), "{key} ttl");
        check_fields(key, entry, strategy.fields.iter().map(|field| &*field.label));
        check_generation(key, entry, strategy.generation);
        check_owned(key, entry, strategy);
        // A node may be created with a status.
        let drops = entry.at(&["subresources", "status"]).is_some() && key != "/nodes";
        assert_eq!(strategy.reset_fields == [&["status"][..]], drops, "{key} resets status");
    }
    assert!(seen > 60, "only {seen}");
}

/// SEL-01
fn check_fields(key: &str, entry: &Value, labels: impl Iterator<Item = &'static str>) {
    let facts = entry.at(&["fieldSelectors", "labels"]).and_then(Value::as_array);
    let mut expected: BTreeSet<&str> = facts
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .filter(|label| !matches!(*label, "metadata.name" | "metadata.namespace"))
        .collect();
    match key {
        "/pods" => _ = expected.insert("spec.host"), // an alias
        // Upstream has the field, but no label for it.
        "events.k8s.io/events" => _ = expected.remove("source"),
        _ => {}
    }
    let offered = labels.filter(|label| !label.is_empty());
    assert_eq!(offered.collect::<BTreeSet<_>>(), expected, "{key} selectable fields");
}

/// SSAI-05: writes to a subresource own no fields that they reset.
fn check_owned(key: &str, entry: &Value, strategy: &Strategy) {
    let parts = entry.get("resetFields").and_then(Value::as_object);
    for (part, by_version) in parts.into_iter().flat_map(pintle_value::Map::iter) {
        let mut versions = by_version.as_object().into_iter().flat_map(pintle_value::Map::values);
        // Upstream's entry for this resource names a version that is not served.
        let void = key == "certificates.k8s.io/podcertificaterequests";
        // If a subresource keeps only some members, its facts are prose.
        let Some(facts) = versions.next().and_then(Value::as_array).filter(|_| !void) else {
            continue;
        };
        let mut facts: BTreeSet<String> =
            facts.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        // The facts are older than v1.36.3 here.
        if (key, part.as_str()) == ("networking.k8s.io/servicecidrs", "status") {
            facts.insert("metadata".to_owned());
        }
        let part = if part == "main" { "" } else { part.as_str() };
        let Owned::Except(members) = strategy.owned(part) else { panic!("{key} {part}") };
        let members: BTreeSet<String> = members.iter().map(|path| path.join(".")).collect();
        assert_eq!(members, facts, "{key} {part:?}: members that such a write does not own");
    }
}

/// META-06
fn check_generation(key: &str, entry: &Value, generation: Generation) {
    let fact = entry.str_at(&["generation"]).unwrap_or_default();
    let own_way = matches!(key, "scheduling.k8s.io/priorityclasses" | "storage.k8s.io/csidrivers");
    let expected = match key {
        _ if own_way => Generation::None,
        "apps/deployments" => Generation::SpecAnd("annotations"),
        "discovery.k8s.io/endpointslices" => Generation::SpecAnd("labels"),
        "admissionregistration.k8s.io/mutatingwebhookconfigurations"
        | "admissionregistration.k8s.io/validatingwebhookconfigurations" => Generation::SpecAsSent,
        _ if fact.starts_with("1 on create") => Generation::Spec,
        _ => Generation::None,
    };
    assert_eq!(generation, expected, "{key} generation: {fact}");
    if !own_way {
        assert!(fact.starts_with("none") || fact.starts_with("1 on create; +1"), "{key}: {fact}");
    }
}

/// META-36
#[test]
fn kinds_with_spec_and_status_have_no_other_members() {
    let schema = pintle_schema::builtin();
    let mut seen = 0;
    for definition in crate::definitions(&crate::RuntimeConfig::default()) {
        let pintle_schema::Shape::Struct { fields, .. } = &schema.get(definition.ty).shape else {
            continue;
        };
        let others: Vec<&str> = fields
            .iter()
            .map(|field| &*field.name)
            .filter(|name| !matches!(*name, "kind" | "apiVersion" | "metadata"))
            .collect();
        if others.contains(&"spec") && others.contains(&"status") {
            seen += 1;
            assert_eq!(others, ["spec", "status"], "{}", definition.kind);
        }
    }
    assert!(seen > 20, "only {seen}");
}

/// An object's index is computed once, by the version that wrote it, so all versions must select by
/// the same values in the same order.
#[test]
fn versions_that_share_objects_share_their_index() {
    let event = super::json(
        r#"{"involvedObject":{"kind":"a","namespace":"b","name":"c","uid":"d","apiVersion":"e",
            "resourceVersion":"f","fieldPath":"g"},"reason":"h","reportingComponent":"i","type":"j"}"#,
    );
    let values = |resource: &str| -> Vec<_> {
        super::strategy(resource).fields.iter().map(|field| field.value.of(&event)).collect()
    };
    assert_eq!(values("events"), values("events.k8s.io/events"));
    assert_eq!(values("events"), ["a", "b", "c", "d", "e", "f", "g", "h", "i", "i", "j"]);
    for kind in groups::all() {
        let shares = matches!(kind.collection, Collection::Shared(_));
        assert_eq!(shares, (kind.group, kind.resource) == ("events.k8s.io", "events"));
    }
}

/// Which metadata a status write keeps, and the fate of dependents (STRAT-04, META-11).
#[test]
fn status_writes_keep_metadata_and_deletions_keep_dependents() {
    use pintle_registry::{Dependents, Strategy as _};

    let labelled = |label: &str| {
        super::json(&format!(r#"{{"metadata":{{"labels":{{"a":"{label}"}}}},"spec":{{}}}}"#))
    };
    let old = labelled("old");
    let (mut stored_kinds, mut orphaned, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for kind in crate::groups::all() {
        let name = kind.resource;
        let mut new = labelled("new");
        kind.strategy.prepare_part(&mut new, &old, "status");
        if new.at(&["metadata", "labels"]) == old.at(&["metadata", "labels"]) {
            stored_kinds.push(name);
        }
        match kind.strategy.dependents() {
            Dependents::Orphaned => orphaned.push(name),
            Dependents::None => without.push(name),
            Dependents::Collected => {}
        }
    }
    stored_kinds.sort_unstable();
    let expected = [
        "apiservices",
        "deployments",
        "devicetaintrules",
        "flowschemas",
        "podcertificaterequests",
        "podgroups",
        "prioritylevelconfigurations",
        "resourceclaims",
        "resourcepoolstatusrequests",
        "servicecidrs",
        "storageversionmigrations",
        "storageversions",
        "validatingadmissionpolicies",
        "volumeattachments",
    ];
    assert_eq!(stored_kinds, expected);
    assert_eq!(orphaned, ["replicationcontrollers", "jobs"]);
    assert_eq!(without, ["events", "events"]);
}

/// Lists by these fields use an index. A field of which many objects share a value must not be among
/// them.
#[test]
fn fields_that_few_objects_share_are_known() {
    let all = definitions(&RuntimeConfig::default());
    let expected: &[(&str, &[&str])] = &[
        ("v1/pods", &["spec.nodeName", "spec.host"]),
        ("v1/events", &["involvedObject.name", "involvedObject.uid"]),
        ("events.k8s.io/v1/events", &["regarding.name", "regarding.uid"]),
        ("resource.k8s.io/v1/resourceslices", &["spec.nodeName"]),
        ("v1/nodes", &[]),
        ("v1/secrets", &[]),
    ];
    for (resource, labels) in expected {
        let definition = find(&all, resource).unwrap_or_else(|| panic!("{resource}"));
        let fields = definition.strategy.fields().iter().filter(|field| field.is_selective);
        assert!(fields.map(|field| &*field.label).eq(labels.iter().copied()), "{resource}");
    }
}
