//! What a list has around its items.

use pintle_registry::request::Encoding;
use pintle_value::{cbor, yaml};

use crate::negotiation::Form;
use crate::respond::{Rendering, parse_own, table};

/// The head, separator and tail of a list.
pub(super) struct Delimiters {
    pub(super) head: Vec<u8>,
    pub(super) between: &'static [u8],
    pub(super) tail: Vec<u8>,
}

impl Delimiters {
    pub(super) fn new(
        rendering: &Rendering,
        metadata: &[u8],
        items: usize,
        encoding: Encoding,
    ) -> Self {
        let mut head = Vec::with_capacity(256);
        write_head(rendering, metadata, &mut head);
        let mut tail = table::TAIL.to_vec();
        let is_table = matches!(rendering.form, Form::Table(_));
        // Go encodes a nil slice as null.
        let null = match rendering.form {
            Form::Table(_) => rendering.printer.variant().null_rows,
            Form::PartialObjectMetadata(_) | Form::PartialObjectMetadataList(_) => true,
            Form::Object | Form::GroupDiscovery => false,
        };
        if items == 0 && null {
            head.pop(); // the bracket
            tail = b"null}".to_vec();
        }
        if encoding == Encoding::Json {
            return Self { head, between: b",", tail };
        }
        head.extend_from_slice(&tail);
        Self::of_empty(&head, if is_table { "rows" } else { "items" }, items, encoding)
    }

    /// The head and tail of a Protobuf list, whose items delimit themselves.
    pub(super) fn of_messages(head: Vec<u8>) -> Self {
        Self { head, between: b"", tail: pintle_schema::protobuf::LIST_TAIL.to_vec() }
    }

    /// The head and tail of a list in YAML or CBOR, made from an empty list in JSON.
    fn of_empty(empty: &[u8], key: &str, items: usize, encoding: Encoding) -> Self {
        let mut tree = parse_own(empty);
        let (mut head, mut tail) = (Vec::with_capacity(256), Vec::new());
        if encoding == Encoding::Cbor {
            if items == 0 {
                cbor::write(&tree, &mut head);
            } else {
                tree.make_object().remove(key);
                cbor::write_list_head(&tree, key, items, &mut head);
            }
        } else {
            yaml::write(&tree, &mut head);
            // Only top-level members begin a line without indentation.
            let (line, none) = (format!("\n{key}: []\n"), " []".len());
            let start = head.windows(line.len()).position(|part| part == line.as_bytes());
            if let Some(start) = start.filter(|_| items > 0) {
                let end = start + line.len();
                tail = head.split_off(end);
                head.truncate(end - none - 1);
                head.push(b'\n');
            }
        }
        Self { head, between: b"", tail }
    }
}

fn write_head(rendering: &Rendering, metadata: &[u8], out: &mut Vec<u8>) {
    let resource = &rendering.resource;
    let (kind, api_version) = match rendering.form {
        Form::Table(version) => {
            return rendering.write_table_head(metadata, version, true, out);
        }
        Form::PartialObjectMetadata(version) | Form::PartialObjectMetadataList(version) => {
            ("PartialObjectMetadataList", version.api_version().to_owned())
        }
        Form::Object | Form::GroupDiscovery => {
            (resource.list_kind.as_str(), resource.api_version())
        }
    };
    let head = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":");
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(metadata);
    out.extend_from_slice(br#","items":["#);
}
