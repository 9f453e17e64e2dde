//! `--tracing-config-file`: the collector to which traces are exported.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use pintle_server::Tracing;
use pintle_value::yaml;

/// Reads `--tracing-config-file`.
pub(super) fn configuration(path: &Path) -> anyhow::Result<Tracing> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let document = yaml::parse_strict(&bytes).with_context(|| path.display().to_string())?;
    Tracing::read(&document).map_err(|why| anyhow!("{}: {why}", path.display()))
}
