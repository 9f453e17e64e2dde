//! The OpenAPI v2 document: definitions without their descriptions, and operations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path as FilePath;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::generate::sources::{Definition, Gvk, Operation, Path, Sources};

/// Adds the contents of the document at `path`.
pub(crate) fn read(path: &FilePath, sources: &mut Sources) -> Result<()> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let document: Value = serde_json::from_slice(&bytes)?;
    for (name, schema) in document["definitions"].as_object().context("no definitions")? {
        sources.definitions.insert(name.clone(), definition(schema)?);
    }
    for (path, item) in document["paths"].as_object().context("no paths")? {
        let mut operations = Path::default();
        for (method, operation) in item.as_object().into_iter().flatten() {
            let Some(action) = operation["x-kubernetes-action"].as_str() else { continue };
            let kind = gvk(&operation["x-kubernetes-group-version-kind"]);
            let operation = Operation { action: action.to_owned(), kind };
            operations.ops.insert(method.clone(), operation);
        }
        if !operations.ops.is_empty() {
            sources.paths.insert(path.clone(), operations);
        }
    }
    Ok(())
}

fn definition(schema: &Value) -> Result<Definition> {
    let text = |key: &str| schema[key].as_str().map(str::to_owned);
    let list = |key: &str| -> Vec<String> {
        let items = schema[key].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let boxed = |value: &Value| -> Result<Option<Box<Definition>>> {
        value.is_object().then(|| definition(value).map(Box::new)).transpose()
    };
    let fields = schema["properties"].as_object().map(|properties| {
        let fields = properties.iter().map(|(name, p)| Ok((name.clone(), definition(p)?)));
        fields.collect::<Result<BTreeMap<_, _>>>()
    });
    Ok(Definition {
        reference: text("$ref").map(|r| r.rsplit('/').next().unwrap_or("").to_owned()),
        kind: text("type"),
        format: text("format"),
        items: boxed(&schema["items"])?,
        values: boxed(&schema["additionalProperties"])?,
        fields: fields.transpose().context("a property")?,
        required: list("required"),
        list_type: text("x-kubernetes-list-type"),
        list_map_keys: list("x-kubernetes-list-map-keys"),
        map_type: text("x-kubernetes-map-type"),
        patch_strategy: text("x-kubernetes-patch-strategy"),
        patch_merge_key: text("x-kubernetes-patch-merge-key"),
        unions: schema.get("x-kubernetes-unions").cloned(),
        gvk: schema["x-kubernetes-group-version-kind"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(gvk)
            .collect(),
    })
}

fn gvk(value: &Value) -> Option<Gvk> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Some(Gvk { group: text("group")?, version: text("version")?, kind: text("kind")? })
}
