//! Tables: columns and rows for people, made by the resource's printer.

use pintle_registry::table::{Column, Row};
use pintle_value::{Value, json};

use super::Rendering;
use super::rendering::write_metadata;
use crate::negotiation::MetaVersion;
use crate::options::IncludeObject;

/// The members of a row's condition, in upstream's order.
const CONDITION_MEMBERS: [&str; 4] = ["type", "status", "reason", "message"];

/// Writes the Table of one object.
pub(super) fn write_single(
    rendering: &Rendering,
    object: &[u8],
    version: MetaVersion,
    with_columns: bool,
    out: &mut Vec<u8>,
) {
    let metadata = json::member(object, "metadata").and_then(|range| object.get(range));
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
    write_head(rendering, &list_metadata, version, with_columns, out);
    write_row(rendering, object, version, out);
    out.extend_from_slice(TAIL);
}

/// What stands behind the rows.
pub(super) const TAIL: &[u8] = b"]}";

/// Writes everything up to the first row. `metadata` is the list's, as JSON.
pub(super) fn write_head(
    rendering: &Rendering,
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
        write_columns(rendering.printer.columns(), out);
    } else {
        out.extend_from_slice(b"null");
    }
    out.extend_from_slice(br#","rows":["#);
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

/// Writes the row of an object, given as JSON in the resource's version.
pub(super) fn write_row(
    rendering: &Rendering,
    object: &[u8],
    version: MetaVersion,
    out: &mut Vec<u8>,
) {
    let tree = json::parse(object).unwrap_or_default();
    let Row { cells, conditions } = rendering.printer.row(&tree, rendering.now);
    out.extend_from_slice(br#"{"cells":"#);
    json::write(&Value::Array(cells), out);
    if !conditions.is_empty() {
        out.extend_from_slice(br#","conditions":["#);
        for (at, condition) in conditions.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_condition(condition, out);
        }
        out.push(b']');
    }
    out.extend_from_slice(br#","object":"#);
    match rendering.include {
        IncludeObject::Object => out.extend_from_slice(object),
        IncludeObject::Metadata => write_metadata(object, version, out),
        IncludeObject::None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

fn write_condition(condition: &Value, out: &mut Vec<u8>) {
    out.push(b'{');
    let present = CONDITION_MEMBERS.iter().filter_map(|key| Some((key, condition.get(key)?)));
    for (at, (key, value)) in present.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        json::write_string(key, out);
        out.push(b':');
        json::write(value, out);
    }
    out.push(b'}');
}
