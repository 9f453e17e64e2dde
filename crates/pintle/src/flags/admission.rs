//! `--admission-control-config-file`: the configuration of admission plugins.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use pintle_server::AdmissionConfiguration;
use pintle_value::{Value, yaml};

/// Reads the file. Relative paths in it are relative to its directory.
pub(super) fn configuration(path: &Path) -> anyhow::Result<AdmissionConfiguration> {
    let read = |path: &Path| -> anyhow::Result<Value> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        yaml::parse_strict(&bytes).with_context(|| path.display().to_string())
    };
    let context = || {
        format!(
            "--admission-control-config-file: unable to read admission control configuration from {:?}",
            path.display()
        )
    };
    let directory = path.parent().unwrap_or_else(|| Path::new(""));
    let open = |name: &str| read(&directory.join(name)).map_err(|why| format!("{why:#}"));
    let document = read(path).with_context(context)?;
    let (configuration, unused) = AdmissionConfiguration::read(&document, &open)
        .map_err(|why| anyhow!(why))
        .with_context(context)?;
    for name in unused {
        tracing::warn!(
            "--admission-control-config-file: the configuration of {name} has no effect"
        );
    }
    Ok(configuration)
}
