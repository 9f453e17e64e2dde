//! Upstream's descriptions of the built-in types and their fields, for `kubectl explain`.
//!
//! The texts are not part of this repository: the build takes them from `k8s-openapi` and embeds
//! them compressed in the binary. Only this crate reads the texts, and `k8s-openapi` is not linked
//! into the server.
//!
//! Must not know: anything but names of types and fields.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// Why the descriptions are not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The embedded data cannot be inflated.
    #[error("the descriptions in the binary are damaged")]
    Damaged(#[from] std::io::Error),
}

/// The records that the build script embedded.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.z"));

/// All descriptions, inflated: about a megabyte. They are inflated when a document is requested,
/// and dropped with it.
#[derive(Clone, Debug)]
pub struct Descriptions {
    text: String,
    /// The offset of each record, in the order of their keys.
    records: Vec<u32>,
}

/// Inflates the descriptions.
pub fn load() -> Result<Descriptions, Error> {
    let mut text = String::new();
    ZlibDecoder::new(COMPRESSED).read_to_string(&mut text)?;
    let ends = text.match_indices('\x1e').map(|(at, _)| at as u32 + 1);
    let mut records: Vec<u32> = std::iter::once(0).chain(ends).collect();
    // No text follows the last separator.
    records.pop();
    Ok(Descriptions { text, records })
}

/// The descriptions of a few fields that are needed often. They are kept, so that not all
/// descriptions are inflated each time.
#[derive(Clone, Debug, Default)]
pub struct Excerpt(BTreeMap<(String, &'static str), String>);

impl Excerpt {
    /// Extracts the descriptions of fields, given by type name and field name. A missing
    /// description is absent; all are absent if the embedded data is damaged.
    pub fn of(fields: impl IntoIterator<Item = (String, &'static str)>) -> Self {
        let Ok(all) = load() else { return Self::default() };
        let described = fields.into_iter().filter_map(|(type_name, field)| {
            let text = all.find(&type_name, field)?.to_owned();
            Some(((type_name, field), text))
        });
        Self(described.collect())
    }

    /// The description of a type's field.
    pub fn of_field(&self, type_name: &str, field: &'static str) -> Option<&str> {
        self.0.get(&(type_name.to_owned(), field)).map(String::as_str)
    }
}

impl Descriptions {
    fn find(&self, type_name: &str, field: &str) -> Option<&str> {
        let wanted = (type_name, field);
        let at = self.records.binary_search_by(|&at| self.key(at).cmp(&wanted)).ok()?;
        let (_, text) = self.record(self.records[at]);
        Some(text)
    }

    /// The description of the current counterpart of a removed type, or of its field: the type of
    /// the same name in the first version of its group, or of the groups to which `extensions`
    /// moved.
    fn of_today(&self, type_name: &str, field: &str) -> Option<&str> {
        let (package, name) = type_name.rsplit_once('.')?;
        let (group, _) = package.rsplit_once('.')?;
        let moved = ["io.k8s.api.apps", "io.k8s.api.networking"];
        let groups: &[&str] = if group == "io.k8s.api.extensions" { &moved } else { &[group] };
        let versions = groups.iter().flat_map(|group| ["v1", "v2"].map(|v| (group, v)));
        let mut names = versions.map(|(group, version)| format!("{group}.{version}.{name}"));
        names.find_map(|name| self.find(&name, field))
    }

    /// The type and field of a record.
    fn key(&self, at: u32) -> (&str, &str) {
        let (key, _) = self.record(at);
        key.split_once('\0').unwrap_or((key, ""))
    }

    fn record(&self, at: u32) -> (&str, &str) {
        let record = self.text[at as usize..].split('\x1e').next().unwrap_or("");
        record.split_once('\x1f').unwrap_or((record, ""))
    }
}

impl pintle_schema::openapi::Descriptions for Descriptions {
    fn of_type(&self, type_name: &str) -> Option<&str> {
        self.find(type_name, "").or_else(|| self.of_today(type_name, ""))
    }

    fn of_field(&self, type_name: &str, field: &str) -> Option<&str> {
        let own = self.find(type_name, field).or_else(|| self.of_today(type_name, field));
        // Lists have no descriptions; these two members are described equally everywhere.
        let shared = || self.find("io.k8s.api.core.v1.Pod", field);
        own.or_else(|| matches!(field, "apiVersion" | "kind").then(shared).flatten())
    }
}
