//! The objects in a project's files. Documents that are not objects, such as templates, are
//! skipped.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// One document of a file.
pub(super) struct Document {
    /// The file's path in the project's folder.
    pub(super) source: String,
    pub(super) tree: Value,
}

/// Every object in the named files and folders, in their order; in a folder, in order of names.
pub(super) fn read(root: &Path, sources: &[String]) -> Result<Vec<Document>> {
    let mut files = Vec::new();
    for source in sources {
        let path = root.join(source);
        ensure!(path.exists(), "there is no {}", path.display());
        collect(&path, &mut files)?;
    }
    let mut documents = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let source = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for part in parts(&text) {
            if let Ok(tree @ Value::Object(_)) = serde_saphyr::from_str::<Value>(part) {
                documents.extend(items(tree).map(|tree| Document { source: source.clone(), tree }));
            }
        }
    }
    Ok(documents)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        let mut paths: Vec<_> = entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
        paths.sort();
        return paths.iter().try_for_each(|path| collect(path, files));
    }
    if !path.exists() {
        return Ok(()); // a dangling link
    }
    let is_text = |ending: &str| ["yaml", "yml", "json"].contains(&ending);
    if path.extension().and_then(|ending| ending.to_str()).is_some_and(is_text) {
        files.push(path.to_owned());
    }
    Ok(())
}

/// Splits at the lines that begin a document, so that an invalid document affects no other.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix("---").unwrap_or(text);
    text.split("\n---").map(|part| part.strip_prefix('\n').unwrap_or(part))
}

/// The objects of a list, or the one object.
fn items(mut tree: Value) -> impl Iterator<Item = Value> {
    let is_list = tree["kind"] == "List" && tree["items"].is_array();
    let listed = match is_list {
        true => tree["items"].as_array_mut().map(std::mem::take).unwrap_or_default(),
        false => vec![tree],
    };
    listed.into_iter()
}
