//! The back end for the types of removed versions:
//! `crates/schema/src/builtin/generated/removed.txt`.
//!
//! They are text, not constants, because constants with pointers slow down every start, and these
//! types are rarely needed. The parser of the file (`pintle_schema::removed`) describes its lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

use super::model::{Field, ListType, Model, Shape, Type};
use super::sources::{Sources, definition_name};

/// The text of the file: every kind of the API in any of these releases that the served release's
/// table does not have, and the types that they consist of. The first of the releases that has a
/// type decides.
pub(crate) fn render(served: &Sources, releases: &[Sources]) -> Result<String> {
    let served = Model::new(served)?;
    let served: BTreeSet<&str> = served.types.values().map(|ty| ty.name.as_str()).collect();
    let mut written: BTreeMap<String, String> = BTreeMap::new();
    for sources in releases {
        let mut due: BTreeSet<String> = kinds(sources).collect();
        let roots = due.clone();
        while let Some(name) = due.pop_first() {
            if served.contains(name.as_str()) || written.contains_key(&name) {
                continue;
            }
            let model = Model::unpublished(sources, [name.as_str()])?;
            written.insert(name.clone(), text(&model, &name, roots.contains(&name))?);
            due.extend(model.references.into_values());
        }
    }
    Ok(written.into_values().collect())
}

/// The kinds of the API: structs that embed `TypeMeta`.
fn kinds(sources: &Sources) -> impl Iterator<Item = String> + '_ {
    let of_api = |path: &&String| {
        let path = path.as_str();
        path.starts_with("k8s.io/api/") || path.contains("/pkg/apis/api")
    };
    let packages = sources.packages.iter().filter(move |(path, _)| of_api(path));
    packages.flat_map(|(path, package)| {
        let kinds = package.structs.iter();
        let kinds = kinds.filter(|(_, members)| members.iter().any(|m| m.name == "TypeMeta"));
        kinds.map(move |(name, _)| definition_name(path, name))
    })
}

fn text(model: &Model, name: &str, is_kind: bool) -> Result<String> {
    let mut types = model.types.values();
    let ty = types.find(|ty| ty.name == name && ty.canonical).context("the type is not there")?;
    let mut out = String::new();
    match &ty.shape {
        Shape::Scalar(scalar) => {
            let _ = writeln!(out, "{name} {scalar}");
        }
        Shape::Struct { fields, atomic: false } => {
            let _ = writeln!(out, "{name}{}", if is_kind { " kind" } else { "" });
            for field in fields {
                render_field(&mut out, model, field)?;
            }
        }
        _ => bail!("{name} is neither a scalar nor a struct"),
    }
    Ok(out)
}

/// Writes ` name type presence tag`, and the attributes that few fields have.
fn render_field(out: &mut String, model: &Model, f: &Field) -> Result<()> {
    let ty = reference(model, &f.ty)?;
    let _ = write!(out, " {} {ty} {} {}", f.name, f.presence, f.tag);
    if f.required {
        out.push_str(" required");
    }
    if !f.inside.is_empty() {
        let tags: Vec<String> = f.inside.iter().map(u32::to_string).collect();
        let _ = write!(out, " inside={}", tags.join(","));
    }
    if f.patch.merge {
        let _ = write!(out, " merge={}", f.patch.merge_key);
    }
    for (is, word) in [(f.patch.replace, " replace"), (f.patch.retain_keys, " retainKeys")] {
        if is {
            out.push_str(word);
        }
    }
    if let Some(default) = &f.default {
        let _ = write!(out, " default={default}");
    }
    out.push('\n');
    Ok(())
}

/// The name of a type in fields.
fn reference(model: &Model, id: &str) -> Result<String> {
    let Some(Type { name, shape, .. }) = model.types.get(id) else {
        let name = model.references.get(id).with_context(|| format!("no name of {id}"))?;
        return Ok(name.clone());
    };
    Ok(match shape {
        Shape::Scalar(scalar) => (*scalar).to_owned(),
        Shape::Struct { .. } => name.clone(),
        Shape::Map { value, atomic: false } => format!("{{}}{}", reference(model, value)?),
        Shape::Map { value, atomic: true } => format!("{{atomic}}{}", reference(model, value)?),
        Shape::List { item, list_type } => {
            let item = reference(model, item)?;
            match list_type {
                ListType::Atomic => format!("[]{item}"),
                ListType::Set => format!("[set]{item}"),
                ListType::Map(keys) => format!("[{}]{item}", keys.join(",")),
            }
        }
    })
}
