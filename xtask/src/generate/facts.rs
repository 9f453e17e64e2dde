//! The front end for a directory of extracted facts (`openapi-facts.json`, `proto-facts.json`,
//! `go-facts.json`, `strategies.json`), and for the supplement in `xtask/facts/`.
//!
//! The extracted Go facts lack the order of members (their JSON is sorted), `omitzero`, the `+enum`
//! marks of string types, and structs outside `types.go`. The supplement has those; [`supplement`]
//! makes it from upstream's sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path as FilePath;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::model::UNPUBLISHED;
use super::sources::{Definition, Member, Message, Named, Package, Path, Sources, definition_name};

/// Facts that the extracted facts lack.
#[derive(Debug, Default, Deserialize, Serialize, PartialEq)]
pub(crate) struct Supplement {
    /// Structs, `+enum` types, and constants of defaults that the facts lack; by package.
    packages: BTreeMap<String, Package>,
    /// The members of the structs whose declaration order differs from that of their Protobuf tags.
    order: BTreeMap<String, Vec<String>>,
    /// The members with `omitzero`, as `package.Struct.member`.
    omit_zero: Vec<String>,
}

#[derive(Deserialize)]
struct OpenApiFacts {
    types: BTreeMap<String, Definition>,
    paths: BTreeMap<String, Path>,
}

#[derive(Deserialize)]
struct GoFacts {
    types: BTreeMap<String, BTreeMap<String, GoStruct>>,
}

#[derive(Deserialize)]
struct GoStruct {
    fields: BTreeMap<String, GoField>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoField {
    go: Option<String>,
    #[serde(rename = "omitempty")]
    omit_empty: bool,
    #[serde(default)]
    inline: bool,
    patch_strategy: Option<String>,
    patch_merge_key: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Strategy {
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    storage: Option<Storage>,
}

#[derive(Deserialize)]
struct Storage {
    version: String,
}

impl Strategy {
    fn named(self, group: &str) -> Named {
        // `core v1` means a form of another group.
        let stored = |storage: Storage| match storage.version.split_once(' ') {
            Some(("core", version)) => (String::new(), version.to_owned()),
            Some((group, version)) => (group.to_owned(), version.to_owned()),
            None => (group.to_owned(), storage.version),
        };
        Named {
            singular: String::new(),
            short: self.short_names,
            categories: self.categories,
            storage: self.storage.map(stored),
        }
    }
}

/// Reads the facts in `dir` and the supplement beside them.
pub(crate) fn read(dir: &FilePath, supplement: &FilePath) -> Result<Sources> {
    let mut sources = read_bare(dir)?;
    let supplement: Supplement = json(supplement)?;
    sources.supply(supplement);
    Ok(sources)
}

/// The supplement with which the facts in `dir` equal `upstream`.
pub(crate) fn supplement(dir: &FilePath, upstream: &Sources) -> Result<Supplement> {
    let facts = read_bare(dir)?;
    let mut out = Supplement::default();
    for (path, package) in &upstream.packages {
        // Versions that the release no longer serves are not needed.
        let prefix = definition_name(path, "");
        if !facts.definitions.keys().any(|d| d.starts_with(&prefix))
            && !path.contains("/admission/")
        {
            continue;
        }
        let known = facts.packages.get(path);
        let mut lacking = Package {
            enums: package.enums.clone(),
            constants: package.constants.clone(),
            ..Package::default()
        };
        for (name, members) in &package.structs {
            let full = format!("{path}.{name}");
            let definition = definition_name(path, name);
            // Without OpenAPI and Protobuf, the Go types must be complete.
            let alone =
                UNPUBLISHED.contains(&definition.as_str()) && facts.message(&definition).is_none();
            let zero = members.iter().filter(|m| m.omit_zero);
            out.omit_zero.extend(zero.map(|m| format!("{full}.{}", m.name)));
            let Some(listed) = known.and_then(|k| k.structs.get(name)) else {
                lacking.structs.insert(name.clone(), members.clone());
                continue;
            };
            let listed: Vec<&str> = listed.iter().map(|m| m.name.as_str()).collect();
            let declared: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
            if alone
                || listed.len() != declared.len()
                || !listed.iter().all(|n| declared.contains(n))
            {
                lacking.structs.insert(name.clone(), members.clone());
            } else if listed != declared {
                out.order.insert(full, declared.into_iter().map(str::to_owned).collect());
            }
        }
        if lacking != Package::default() {
            out.packages.insert(path.clone(), lacking);
        }
    }
    Ok(out)
}

fn read_bare(dir: &FilePath) -> Result<Sources> {
    let openapi: OpenApiFacts = json(&dir.join("openapi-facts.json"))?;
    let messages: BTreeMap<String, Message> = json(&dir.join("proto-facts.json"))?;
    let go: GoFacts = json(&dir.join("go-facts.json"))?;
    let mut strategies: BTreeMap<String, serde_json::Value> = json(&dir.join("strategies.json"))?;
    strategies.retain(|name, _| !name.starts_with('_'));
    let named = strategies
        .into_iter()
        .map(|(name, strategy)| {
            let (group, resource) = name.split_once('/').context("a strategy without a group")?;
            let strategy: Strategy = serde_json::from_value(strategy)?;
            Ok(((group.to_owned(), resource.to_owned()), strategy.named(group)))
        })
        .collect::<Result<_>>()?;
    let mut sources = Sources {
        definitions: openapi.types,
        paths: openapi.paths,
        messages,
        packages: BTreeMap::new(),
        named,
    };
    for (path, structs) in go.types {
        let structs = structs
            .into_iter()
            .map(|(name, s)| {
                let members = sources.in_tag_order(&definition_name(&path, &name), s);
                (name, members)
            })
            .collect();
        sources.packages.insert(path, Package { structs, ..Package::default() });
    }
    Ok(sources)
}

impl Sources {
    /// The members of a struct by their Protobuf tags: nearly always the order of declaration.
    fn in_tag_order(&self, definition: &str, s: GoStruct) -> Vec<Member> {
        let message = self.message(definition);
        let mut members: Vec<Member> =
            s.fields.into_iter().map(|(name, field)| field.member(name)).collect();
        members.sort_by_key(|m| {
            message.and_then(|message| super::model::message_field(message, m)).map_or(0, |f| f.tag)
        });
        members
    }

    fn supply(&mut self, supplement: Supplement) {
        for (path, lacking) in supplement.packages {
            let package = self.packages.entry(path).or_default();
            package.structs.extend(lacking.structs);
            package.enums.extend(lacking.enums);
            package.constants.extend(lacking.constants);
        }
        for (path, package) in &mut self.packages {
            for (name, members) in &mut package.structs {
                let full = format!("{path}.{name}");
                if let Some(order) = supplement.order.get(&full) {
                    members.sort_by_key(|m| order.iter().position(|n| *n == m.name));
                }
                for member in members {
                    let member_name = format!("{full}.{}", member.name);
                    member.omit_zero |= supplement.omit_zero.contains(&member_name);
                }
            }
        }
    }
}

impl GoField {
    fn member(self, name: String) -> Member {
        // The extraction cuts `metav1.TypeMeta` at the dot.
        let go = self.go.as_deref().unwrap_or(&name).to_owned();
        let bare = go.trim_start_matches('*').rsplit('.').next().unwrap_or(&go).to_owned();
        let mut tags = self.tags;
        for (key, value) in
            [("patchStrategy", self.patch_strategy), ("patchMergeKey", self.patch_merge_key)]
        {
            let marker = value.map(|v| format!("{key}={v}"));
            tags.extend(marker.filter(|m| !tags.contains(m)));
        }
        Member {
            name: if self.inline { bare } else { name },
            go,
            omit_empty: self.omit_empty,
            omit_zero: false,
            inline: self.inline,
            tags,
        }
    }
}

fn json<T: DeserializeOwned>(path: &FilePath) -> Result<T> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))
}
