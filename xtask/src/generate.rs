//! `cargo xtask generate`: writes the tables of the built-in API from facts.
//!
//! Two front ends ([`facts`], [`upstream`]) read [`sources::Sources`]; [`model::Model`] joins them;
//! the back ends write files.

mod descriptions;
mod facts;
mod go_names;
mod model;
mod openapi;
mod removed;
mod resources;
mod rules;
mod sources;
mod types;
mod upstream;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use sources::Sources;

#[cfg(test)]
mod tests;

/// Runs the task with the arguments after its name.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let sources = match args {
        ["--facts", dir] => facts::read(Path::new(dir), &supplement_path())?,
        ["--upstream", dir] => upstream::read(Path::new(dir))?,
        ["--removed", facts_dir, upstream_dirs @ ..] => {
            let served = facts::read(Path::new(facts_dir), &supplement_path())?;
            let releases = upstream_dirs.iter().map(|dir| upstream::read_modules(Path::new(dir)));
            let releases: Vec<Sources> = releases.collect::<Result<_>>()?;
            return write(&removed_path(), &removed::render(&served, &releases)?);
        }
        ["--supplement", facts_dir, upstream_dir] => {
            let upstream = upstream::read_modules(Path::new(upstream_dir))?;
            let supplement = facts::supplement(Path::new(facts_dir), &upstream)?;
            let text = serde_json::to_string_pretty(&supplement)? + "\n";
            return write(&supplement_path(), &text);
        }
        _ => bail!(
            "generate wants --facts, --upstream, --supplement or --removed: see `cargo xtask`"
        ),
    };
    for (path, text) in files(&sources)? {
        write(&path, &text)?;
    }
    Ok(())
}

/// The generated files and their texts.
fn files(sources: &Sources) -> Result<Vec<(PathBuf, String)>> {
    let model = model::Model::new(sources)?;
    let resources = resources::model(sources)?;
    let crates = root().join("crates");
    Ok(vec![
        (crates.join("schema/src/builtin/generated/types.rs"), types::render(&model)),
        (crates.join("schema/src/builtin/generated/go_names.rs"), go_names::render(&model)),
        (crates.join("schema/src/builtin/generated/openapi.rs"), openapi::render(sources)),
        (crates.join("descriptions/generated/roots.rs"), descriptions::render(sources)),
        (crates.join("kinds/src/generated/resources.rs"), resources::render(&resources)),
    ])
}

fn removed_path() -> PathBuf {
    root().join("crates/schema/src/builtin/generated/removed.txt")
}

fn supplement_path() -> PathBuf {
    root().join("xtask/facts/supplement.json")
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
