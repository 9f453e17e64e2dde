//! Writes Tables with a printer. The cells of a stored object are cached with the object if the
//! printer is the resource's own.

use std::sync::Arc;

use pintle_registry::table::Column;
use pintle_registry::{Encoded, Extra};
use pintle_value::json;

use super::rendering::{Shown, write_metadata};
use super::{Rendering, parse_own};
use crate::negotiation::MetaVersion;
use crate::options::IncludeObject;

/// The end of a Table.
pub(super) const TAIL: &[u8] = b"]}";

impl Rendering {
    /// Writes the Table of one object.
    pub(super) fn write_table(
        &self,
        shown: &Shown<'_>,
        version: MetaVersion,
        with_columns: bool,
        out: &mut Vec<u8>,
    ) {
        let metadata = json::member(shown.json, "metadata").and_then(|range| shown.json.get(range));
        let revision = metadata.and_then(|metadata| {
            let range = json::member(metadata, "resourceVersion")?;
            metadata.get(range)
        });
        let mut list_metadata = b"{".to_vec();
        if let Some(revision) = revision {
            list_metadata.extend_from_slice(br#""resourceVersion":"#);
            list_metadata.extend_from_slice(revision);
        }
        list_metadata.push(b'}');
        self.write_table_head(&list_metadata, version, with_columns, out);
        self.write_row(shown, version, out);
        out.extend_from_slice(TAIL);
    }

    /// Writes a Table up to its first row. `metadata` is the list's, as JSON.
    pub(super) fn write_table_head(
        &self,
        metadata: &[u8],
        version: MetaVersion,
        with_columns: bool,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(br#"{"kind":"Table","apiVersion":""#);
        out.extend_from_slice(version.api_version().as_bytes());
        out.extend_from_slice(br#"","metadata":"#);
        out.extend_from_slice(metadata);
        out.extend_from_slice(br#","columnDefinitions":"#);
        if with_columns {
            write_columns(self.printer.columns(), out);
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(br#","rows":["#);
    }

    /// Writes the row of an object.
    pub(super) fn write_row(&self, shown: &Shown<'_>, version: MetaVersion, out: &mut Vec<u8>) {
        let is_own = || Arc::ptr_eq(&self.printer, &self.resource.printer);
        match shown.stored.filter(|_| is_own()) {
            Some(stored) => {
                self.resource.encoded(stored, Extra::Row).write_row(self.now, out);
            }
            None => {
                let tree = parse_own(shown.json);
                Encoded::row(&*self.printer, &tree).write_row(self.now, out);
            }
        }
        out.extend_from_slice(br#","object":"#);
        match self.include {
            IncludeObject::Object => out.extend_from_slice(shown.json),
            IncludeObject::Metadata => write_metadata(&self.resource, shown.json, version, out),
            IncludeObject::None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }
}

fn write_columns(columns: &[Column], out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        for (label, text) in [
            (&br#"{"name":"#[..], column.name.as_str()),
            (br#","type":"#, column.kind),
            (br#","format":"#, &column.format),
            (br#","description":"#, &column.description),
        ] {
            out.extend_from_slice(label);
            json::write_string(text, out);
        }
        out.extend_from_slice(format!(",\"priority\":{}}}", column.priority).as_bytes());
    }
    out.push(b']');
}
