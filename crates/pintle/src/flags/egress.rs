//! `--egress-selector-config-file`: the proxies of outgoing connections.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use pintle_server::EgressSelector;
use pintle_value::yaml;

/// Reads `--egress-selector-config-file`.
pub(super) fn selector(path: &Path) -> anyhow::Result<EgressSelector> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let document = yaml::parse_strict(&bytes).with_context(|| path.display().to_string())?;
    EgressSelector::read(&document).map_err(|why| anyhow!("{}: {why}", path.display()))
}
