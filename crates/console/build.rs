//! Compresses the files of `page/` and writes the table of them, in the order of their names.
//!
//! The same files give the same bytes: the compressed form has no time and no name.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

const PAGE: &str = "page";

/// The media types by extension.
const MEDIA_TYPES: [(&str, &str); 4] = [
    ("css", "text/css; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("svg", "image/svg+xml"),
];

fn main() -> anyhow::Result<()> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(PAGE).context(PAGE)? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut table = String::from("&[\n");
    for path in &paths {
        row(path, &out, &mut table).with_context(|| path.display().to_string())?;
    }
    table.push_str("]\n");
    std::fs::write(out.join("files.rs"), table)?;
    println!("cargo::rerun-if-changed={PAGE}");
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}

/// Writes the compressed file, and its row to the table.
fn row(path: &Path, out: &Path, table: &mut String) -> anyhow::Result<()> {
    let text = std::fs::read(path)?;
    let name = path.file_name().and_then(|name| name.to_str()).context("a name in UTF-8")?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let Some((_, media_type)) = MEDIA_TYPES.iter().find(|(known, _)| *known == extension) else {
        bail!("no media type for `.{extension}`");
    };
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(&text)?;
    std::fs::write(out.join(format!("{name}.gz")), encoder.finish()?)?;
    let hash = Sha256::digest(&text);
    let tag: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    writeln!(
        table,
        "    File {{ name: {name:?}, media_type: {media_type:?}, etag: \"\\\"{tag}\\\"\", \
         gzip: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.gz\")) }},"
    )?;
    Ok(())
}
