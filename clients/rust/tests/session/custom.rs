//! kube-rs's own examples of custom resources (`crd_api`, `crd_derive`, `crd_derive_schema`): a
//! definition from the derive macro, and the life of its objects.

use anyhow::{Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Error, ResourceExt as _};
use serde_json::{Value, json};

use crate::{World, object};

const LIVING: &str = r#"{
    "name": "v1", "served": true, "storage": true,
    "additionalPrinterColumns": [{"name": "Spec", "type": "string", "jsonPath": ".spec.name"}],
    "selectableFields": [{"jsonPath": ".spec.name"}],
    "subresources": {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
    "schema": {"openAPIV3Schema": {
        "type": "object", "required": ["spec"], "title": "Foo", "properties": {
            "spec": {"type": "object", "required": ["info", "name", "replicas"], "properties": {
                "name": {"type": "string", "minLength": 3},
                "info": {"type": "string"},
                "replicas": {"type": "integer", "format": "int32"}}},
            "status": {"type": "object", "nullable": true, "required": ["is_bad", "replicas"],
                "properties": {
                    "is_bad": {"type": "boolean"},
                    "replicas": {"type": "integer", "format": "int32"}}}}}}
}"#;

const CHECKED: &str = r#"{
    "name": "v1", "served": true, "storage": true,
    "schema": {"openAPIV3Schema": {
        "type": "object", "required": ["spec"],
        "x-kubernetes-validations": [{"rule": "self.metadata.name != 'forbidden'"}],
        "properties": {"spec": {
            "type": "object", "required": ["nonNullable"],
            "x-kubernetes-validations": [{"rule": "self.nonNullable == oldSelf.nonNullable"}],
            "properties": {
                "nonNullable": {"type": "string"},
                "nonNullableWithDefault": {"type": "string", "default": "default_value"},
                "nullable": {"type": "string", "nullable": true},
                "nullableWithDefault":
                    {"type": "string", "nullable": true, "default": "default_nullable"},
                "defaultListable": {"type": "array", "default": [],
                    "items": {"type": "integer", "format": "uint32", "minimum": 0}},
                "setListable": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "integer", "format": "u32", "minimum": 0}},
                "celValidated": {"type": "string", "nullable": true, "default": "legal",
                    "x-kubernetes-validations": [
                        {"rule": "self != 'illegal'", "reason": "FieldValueForbidden",
                         "messageExpression": "'string cannot be illegal'"},
                        {"rule": "self != 'not legal'", "reason": "FieldValueInvalid"}]},
                "immutable": {"type": "string", "nullable": true, "x-kubernetes-validations": [
                    {"rule": "oldSelf.optMap(o, o == self).orValue(true)",
                     "optionalOldSelf": true, "message": "Immutable after creation"}]}}}}}}
}"#;

/// Foos of this version, whose definition is established.
async fn foos(world: &World, version: &str) -> Result<Api<DynamicObject>> {
    let version: Value = serde_json::from_str(version)?;
    let definition: CustomResourceDefinition = object(json!({
        "metadata": {"name": "foos.clux.dev"},
        "spec": {
            "group": "clux.dev",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "shortNames": ["f"]},
            "scope": "Namespaced",
            "versions": [version],
        },
    }))?;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    definitions.create(&PostParams::default(), &definition).await?;
    let established = conditions::is_crd_established();
    await_condition(definitions, "foos.clux.dev", established).await?;
    Ok(Api::namespaced_with(world.client.clone(), "t", &kind()))
}

fn kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("clux.dev", "v1", "Foo"))
}

fn foo(name: &str, spec: Value) -> DynamicObject {
    DynamicObject::new(name, &kind()).data(json!({"spec": spec}))
}

/// Checks that the request was refused with this text.
fn refused<T>(result: kube::Result<T>, words: &[&str]) -> Result<()> {
    let Err(Error::Api(status)) = result else { bail!("accepted, or no response") };
    ensure!(status.code == 422 && status.reason == "Invalid", "{status:?}");
    for word in words {
        ensure!(status.message.contains(word), "no {word:?} in {}", status.message);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_objects_have_status_and_scale() -> Result<()> {
    let world = World::start().await?;
    let foos = foos(&world, LIVING).await?;
    let (post, patch) = (PostParams::default(), PatchParams::default());
    let mut baz = foo("baz", json!({"name": "baz", "info": "old baz", "replicas": 1}));
    foos.create(&post, &baz).await?;
    baz.metadata.resource_version = foos.get("baz").await?.resource_version();
    baz.data["spec"]["info"] = "new baz".into();
    let replaced = foos.replace("baz", &post, &baz).await?;
    ensure!(replaced.data["spec"]["info"] == "new baz" && replaced.data["status"].is_null());
    foos.delete("baz", &DeleteParams::default()).await?;

    let qux = foo("qux", json!({"name": "qux", "info": "unpatched qux", "replicas": 0}));
    let mut qux = foos.create(&post, &qux).await?;
    qux.data["status"] = json!({"is_bad": true, "replicas": 0});
    let qux = foos.replace_status("qux", &post, &qux).await?;
    ensure!(qux.data["status"]["is_bad"] == true, "{:?}", qux.data);
    let good = Patch::Merge(json!({"status": {"is_bad": false, "replicas": 1}}));
    foos.patch_status("qux", &patch, &good).await?;
    ensure!(foos.get_status("qux").await?.data["status"]["is_bad"] == false);

    ensure!(foos.get_scale("qux").await?.status.is_some_and(|status| status.replicas == 1));
    let more = Patch::Merge(json!({"spec": {"replicas": 2}}));
    let scale = foos.patch_scale("qux", &patch, &more).await?;
    ensure!(scale.status.is_some_and(|status| status.replicas == 1));
    ensure!(
        scale.spec.and_then(|spec| spec.replicas) == Some(2),
        "the patch changes the spec only"
    );
    let words = Patch::Merge(json!({"spec": {"info": "patched qux"}}));
    let patched = foos.patch("qux", &patch, &words).await?;
    ensure!(patched.data["spec"] == json!({"name": "qux", "info": "patched qux", "replicas": 2}));

    let named = ListParams::default().fields("spec.name=qux");
    ensure!(foos.list(&named).await?.items.len() == 1);
    ensure!(foos.delete("qux", &DeleteParams::default()).await?.is_right(), "it goes at once");
    let short = foo("x", json!({"name": "x", "info": "failing", "replicas": 1}));
    let words = ["spec.name in body should be at least 3 chars long"];
    refused(foos.create(&post, &short).await, &words)?;
    foos.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;

    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let deleted = definitions.delete("foos.clux.dev", &DeleteParams::default()).await?;
    if let Some(definition) = deleted.left() {
        let uid = definition.uid().unwrap_or_default();
        await_condition(definitions, "foos.clux.dev", conditions::is_deleted(&uid)).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_defaulted_and_checked_by_their_schema() -> Result<()> {
    let world = World::start().await?;
    let foos = foos(&world, CHECKED).await?;
    let post = PostParams::default();
    let nulls = json!({"nonNullable": "", "nullable": null, "nullableWithDefault": null});
    let bar = foos.create(&post, &foo("bar", nulls)).await?.data;
    let spec = bar["spec"].as_object().cloned().unwrap_or_default();
    ensure!(spec.get("nullable") == Some(&Value::Null), "a null that may be stays: {spec:?}");
    ensure!(spec.get("nullableWithDefault") == Some(&Value::Null), "{spec:?}");

    let given = json!({
        "nonNullable": "a", "defaultListable": [2], "setListable": [2], "immutable": "a"
    });
    let baz = foos.create(&post, &foo("baz", given)).await?.data;
    ensure!(baz["spec"]["nonNullableWithDefault"] == "default_value", "{baz}");
    ensure!(baz["spec"]["nullableWithDefault"] == "default_nullable", "{baz}");
    ensure!(baz["spec"]["celValidated"] == "legal", "{baz}");
    let missing = foos.create(&post, &foo("qux", json!({}))).await;
    refused(missing, &["clux.dev \"qux\" is invalid", "spec.nonNullable: Required value"])?;
    let forbidden = foos.create(&post, &foo("forbidden", json!({"nonNullable": "a"}))).await;
    refused(forbidden, &["failed rule: self.metadata.name != 'forbidden'"])?;

    let apply = PatchParams::apply("crd_derive_schema_example").force();
    let applied = |spec: Value| {
        Patch::Apply(json!({"apiVersion": "clux.dev/v1", "kind": "Foo", "spec": spec}))
    };
    let both = applied(json!({"defaultListable": [3], "setListable": [3]}));
    let merged = foos.patch("baz", &apply, &both).await?.data;
    ensure!(merged["spec"]["defaultListable"] == json!([3]), "it is replaced: {merged}");
    ensure!(merged["spec"]["setListable"] == json!([2, 3]), "it is merged: {merged}");
    for (spec, words) in [
        (
            json!({"celValidated": "illegal"}),
            ["spec.celValidated: Forbidden", "string cannot be illegal"],
        ),
        (
            json!({"celValidated": "not legal"}),
            ["spec.celValidated: Invalid value", "failed rule: self != 'not legal'"],
        ),
        (json!({"immutable": "b"}), ["spec.immutable: Invalid value", "Immutable after creation"]),
        (
            json!({"nonNullable": "b"}),
            ["spec: Invalid value", "failed rule: self.nonNullable == oldSelf.nonNullable"],
        ),
    ] {
        refused(foos.patch("baz", &apply, &applied(spec)).await, &words)?;
    }
    Ok(())
}
