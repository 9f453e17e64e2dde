//! Writes documents, and compresses them while they are written.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use pintle_meta::Status;
use pintle_registry::Resource;
use pintle_schema::Schema;
use pintle_schema::openapi::{self, Source};

use super::document::{Format, Wanted};
use super::pages::{V3Page, group_versions, open_id, pages};
use super::{Index, V3};
use crate::handlers::Call;

/// The compression level: fast, as most documents are requested once and some are very long.
const COMPRESSION: Compression = Compression::fast();

/// Builds a document and compresses it while it is written. The document of version 2, which is the
/// longest, is in memory uncompressed only if it is converted to a Protobuf message.
pub(super) fn build(
    call: &Call<'_>,
    wanted: &Wanted,
    format: Format,
    index: &Index,
) -> Result<(Bytes, &'static str), Status> {
    let mut packed = GzEncoder::new(Vec::new(), COMPRESSION);
    let mut written = Ok(());
    if format == Format::Json {
        let mut pack = |piece: &[u8]| {
            if written.is_ok() {
                written = packed.write_all(piece);
            }
        };
        write(call, wanted, index, &mut pack)?;
    } else {
        let mut json = Vec::new();
        write(call, wanted, index, &mut |piece| json.extend_from_slice(piece))?;
        let message = wanted.message(&json)?;
        drop(json);
        written = packed.write_all(&message);
    }
    let packed = written.and_then(|()| packed.finish()).map_err(Status::internal)?;
    Ok((packed.into(), wanted.media_type(format)))
}

/// Writes a document as JSON: that of version 2 piece by piece, any other as a whole.
fn write(
    call: &Call<'_>,
    wanted: &Wanted,
    index: &Index,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<(), Status> {
    let descriptions = pintle_descriptions::load().map_err(Status::internal)?;
    let release = call.api.settings.version.emulation();
    let source = Source {
        schema: schema(&index.resources),
        descriptions: &descriptions,
        cbor: call.api.settings.cbor,
        version: &release,
        open_id: open_id(call),
    };
    let versions = group_versions(&index.resources);
    match wanted {
        Wanted::V2 => {
            let excerpts = index.v2.iter().map(|other| &other.excerpt);
            openapi::v2_document(source, &versions, excerpts, sink);
        }
        Wanted::Index => {
            let documents = pages(&versions, source.open_id).map(|page| page.path());
            let documents = documents.filter_map(|path| {
                let hash = index.hashes.get(&format!("{V3}/{path}"))?;
                Some((path, hash.as_str()))
            });
            let mut documents: Vec<(String, &str)> = documents.collect();
            for (path, hash) in &index.extensions {
                documents.retain(|(own, _)| own != path);
                documents.push((path.clone(), hash));
            }
            sink(&openapi::v3_index(documents.iter().map(|(path, hash)| (&**path, *hash))));
        }
        Wanted::V3(path) if index.converted.contains_key(path) => {
            index.converted.get(path).into_iter().for_each(|made| sink(&made.json));
        }
        Wanted::V3(path) => {
            let page = pages(&versions, source.open_id).find(|page| page.path() == *path);
            sink(&match page.ok_or_else(Status::no_such_path)? {
                V3Page::Resources(version) => openapi::v3_document(source, version),
                V3Page::Page(page) => openapi::v3_page(source, page),
            });
        }
    }
    Ok(())
}

/// The schema of all served types: the built-in one, or the larger one with removed versions if any
/// of them is served.
fn schema(resources: &[Arc<Resource>]) -> &'static Schema {
    let is_removed = |resource: &Arc<Resource>| {
        resource.described.is_none() && !pintle_schema::is_builtin(&resource.schema, resource.ty)
    };
    let removed = resources.iter().any(is_removed);
    if removed { pintle_schema::with_removed() } else { pintle_schema::builtin() }
}
