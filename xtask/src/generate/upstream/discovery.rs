//! The discovery documents (`api/discovery/*.json`): the names of resources, and the stored form,
//! which `storageVersionHash` identifies.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::generate::sources::{Named, Sources};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    group_version: String,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Resource {
    name: String,
    singular_name: String,
    kind: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    storage_version_hash: String,
}

/// Adds the contents of the documents in `folder`, except those that list groups or versions.
pub(crate) fn read(folder: &Path, sources: &mut Sources) -> Result<()> {
    let mut lists = Vec::new();
    for path in super::entries(folder)? {
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        lists.extend(serde_json::from_slice::<List>(&text).ok());
    }
    let versions: BTreeSet<(String, String)> =
        lists.iter().map(|l| group_version(&l.group_version)).collect();
    for list in lists {
        let (group, _) = group_version(&list.group_version);
        for r in list.resources.into_iter().filter(|r| !r.name.contains('/')) {
            let storage = match r.storage_version_hash.as_str() {
                "" => None,
                hash => {
                    let stored = versions.iter().find(|(g, v)| hash_of(g, v, &r.kind) == hash);
                    Some(stored.with_context(|| format!("what is {} stored as?", r.name))?.clone())
                }
            };
            let singular = if r.singular_name == r.kind.to_lowercase() {
                String::new()
            } else {
                r.singular_name
            };
            let named = Named { singular, short: r.short_names, categories: r.categories, storage };
            sources.named.insert((group.clone(), r.name), named);
        }
    }
    Ok(())
}

fn group_version(text: &str) -> (String, String) {
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    (group.to_owned(), version.to_owned())
}

/// Upstream: apiserver/pkg/endpoints/discovery/storageversionhash.go.
fn hash_of(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    STANDARD.encode(&digest[..8])
}

#[cfg(test)]
mod tests;
