//! The types of fields that OpenAPI does not publish, from Protobuf or Go, as OpenAPI definitions.

use anyhow::{Result, bail};

use crate::generate::sources::{
    Definition, MessageField, Sources, definition_name, definition_of_message,
};

/// The type of a Protobuf field, as an OpenAPI definition.
pub(super) fn definition_of_proto(
    sources: &Sources,
    field: &MessageField,
    package_of: &str,
) -> Definition {
    let single = |kind: &str| {
        let (kind, format) = match kind {
            "string" => ("string", None),
            "bytes" => ("string", Some("byte")),
            "bool" => ("boolean", None),
            "int32" => ("integer", Some("int32")),
            "int64" => ("integer", Some("int64")),
            "double" => ("number", Some("double")),
            message => return of_message(sources, &definition_of_message(message, package_of)),
        };
        Definition {
            kind: Some(kind.to_owned()),
            format: format.map(str::to_owned),
            ..Definition::default()
        }
    };
    match field.kind.strip_prefix("map<string,").and_then(|k| k.strip_suffix('>')) {
        Some(value) => Definition {
            kind: Some("object".to_owned()),
            values: Some(Box::new(single(value))),
            ..Definition::default()
        },
        None if field.repeated => list_of(single(&field.kind)),
        None => single(&field.kind),
    }
}

/// A message represents a named slice if its only field is `items` and no struct has its name.
fn of_message(sources: &Sources, name: &str) -> Definition {
    let items = sources.message(name).filter(|m| m.len() == 1).and_then(|m| m.get("items"));
    match items {
        Some(items) if sources.go_struct(name).is_none() => {
            definition_of_proto(sources, items, name)
        }
        _ => Definition { reference: Some(name.to_owned()), ..Definition::default() },
    }
}

/// The type of a Go member, as an OpenAPI definition; only for structs without messages.
pub(super) fn definition_of_go(sources: &Sources, package: &str, go: &str) -> Result<Definition> {
    let plain = |kind: &str, format: Option<&str>| Definition {
        kind: Some(kind.to_owned()),
        format: format.map(str::to_owned),
        ..Definition::default()
    };
    if let Some(item) = go.strip_prefix("[]") {
        return Ok(list_of(definition_of_go(sources, package, item)?));
    }
    let named =
        |name: &str| Definition { reference: Some(name.to_owned()), ..Definition::default() };
    Ok(match go.trim_start_matches('*') {
        "string" => plain("string", None),
        "bool" => plain("boolean", None),
        "int32" => plain("integer", Some("int32")),
        "int64" => plain("integer", Some("int64")),
        "interface{}" | "any" => Definition::default(),
        "runtime.RawExtension" => named("io.k8s.apimachinery.pkg.runtime.RawExtension"),
        "Time" => named("io.k8s.apimachinery.pkg.apis.meta.v1.Time"),
        local => {
            let name = definition_name(package, local);
            match sources.go_struct(&name) {
                Some(_) => named(&name),
                None if local.contains('.') => bail!("cannot resolve the Go type {go}"),
                None => plain("string", None),
            }
        }
    })
}

fn list_of(item: Definition) -> Definition {
    Definition {
        kind: Some("array".to_owned()),
        items: Some(Box::new(item)),
        ..Definition::default()
    }
}
