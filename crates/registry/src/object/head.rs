//! A part of an object that is decoded without the rest.

use std::ops::Range;

use pintle_value::json::Reader;
use pintle_value::token::Tokens as _;
use pintle_value::{Map, Str, Value};

/// A part of an object's stored form.
pub(crate) struct ObjectHead {
    /// Its `apiVersion`, `metadata` and some other members.
    pub(crate) tree: Value,
    /// Where the metadata is in the object's abridged JSON; empty if that is unknown.
    pub(crate) metadata: Range<usize>,
}

impl ObjectHead {
    /// Whether it is known where the metadata is, so that the rest can be copied.
    pub(crate) const fn is_located(&self) -> bool {
        self.metadata.start < self.metadata.end
    }
}

/// See [`Object::head`].
pub(super) fn read_head(
    reader: &mut Reader<'_>,
    paths: &[&[&str]],
) -> Result<ObjectHead, pintle_value::Error> {
    let (mut tree, mut metadata) = (Map::new(), 0..0);
    let mut to_find = 2 + paths.len();
    reader.value()?;
    while to_find > 0
        && let Some(name) = reader.key()?
    {
        let below: Vec<&[&str]> = paths
            .iter()
            .filter(|path| path.first() == Some(&name))
            .map(|path| &path[1..])
            .collect();
        to_find = to_find.saturating_sub(below.len());
        match name {
            "apiVersion" => {
                tree.insert("apiVersion", reader.tree()?);
                to_find -= 1;
            }
            "metadata" => {
                metadata.start = reader.offset();
                tree.insert("metadata", reader.tree_with_raw(&OWNED_FIELDS[1..])?);
                metadata.end = reader.offset();
                to_find -= 1;
            }
            _ if below.is_empty() => reader.skip()?,
            _ => {
                let name = Str::from(name);
                tree.insert(name, reader.excerpt(&below, false)?);
            }
        }
    }
    Ok(ObjectHead { tree: tree.into(), metadata })
}

/// The path of the members that [`Object::tree`] leaves as raw JSON.
pub(super) const OWNED_FIELDS: &[&str; 3] = &["metadata", "managedFields", "fieldsV1"];
