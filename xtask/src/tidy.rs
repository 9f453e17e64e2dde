//! `cargo xtask tidy`: checks the house rules that a program can check. Each check reports all
//! offences in one pass, with the path and often the line.

mod circles;
mod code;
mod hooks;
mod ids;
mod manifests;
mod sources;
#[cfg(test)]
mod tests;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::generate::root;
use crate::package;

/// Checks the repository, prints all offences, and fails if there is one.
pub(crate) fn run() -> Result<()> {
    let offences = check(&root())?;
    for offence in &offences {
        println!("{offence}");
    }
    match offences.len() {
        0 => Ok(()),
        n => bail!("{n} offences against the house rules"),
    }
}

/// Returns all offences in the order of the checks.
fn check(root: &Path) -> Result<Vec<String>> {
    let mut offences = manifests::check(root)?;
    offences.extend(sources::check(root)?);
    offences.extend(ids::check(root)?);
    offences.extend(circles::check(root)?);
    offences.extend(hooks::check(root)?);
    offences.extend(words::check(root)?);
    offences.extend(package::check_licences(root)?);
    Ok(offences)
}

/// Returns the files below `root` with an extension, as sorted paths relative to `root`. Skips
/// hidden folders, `target` and `node_modules`.
fn files(root: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut due = vec![root.to_path_buf()];
    while let Some(folder) = due.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    due.push(path);
                }
            } else if path.extension().is_some_and(|e| e == extension) {
                files.push(path.strip_prefix(root)?.to_path_buf());
            }
        }
    }
    files.sort();
    Ok(files)
}
