//! Applies the objects of `--manifests` before the server is ready.

use std::path::{Path, PathBuf};

use pintle_controllers::{Environment, manifests};
use pintle_value::{Value, yaml};

use crate::{Config, Error};

const FLAG: &str = "manifests";

/// A file and its objects.
struct Source {
    path: PathBuf,
    objects: Vec<Value>,
}

/// Applies all objects that the configuration names.
pub(super) async fn apply(environment: &Environment, config: &Config) -> Result<(), Error> {
    let mut sources = Vec::new();
    for path in &config.manifests {
        read(path, &mut sources).map_err(|error| error.of(FLAG))?;
    }
    let mut objects: Vec<_> = sources.iter().flat_map(|source| source.objects.clone()).collect();
    for text in &config.objects {
        let wrong = |reason: String| Error::Manifest { path: "objects".into(), reason };
        collect(text, &mut objects).map_err(wrong)?;
    }
    let applied = manifests::apply(environment, objects).await;
    applied.map_err(|refused| {
        let (object, reason) = (named(&refused.object), refused.status.message);
        match sources.into_iter().find(|source| source.objects.contains(&refused.object)) {
            Some(Source { path, .. }) => {
                Error::Manifest { path, reason: format!("cannot apply {object}: {reason}") }
                    .of(FLAG)
            }
            None => Error::Apply { object, reason },
        }
    })
}

/// Formats an object's kind, namespace and name as kubectl does.
fn named(object: &Value) -> String {
    let part = |path: &[&str]| object.str_at(path).unwrap_or_default();
    let (kind, name) = (part(&["kind"]), part(&["metadata", "name"]));
    match part(&["metadata", "namespace"]) {
        "" => format!("{kind} {name:?}"),
        namespace => format!("{kind} {name:?} in namespace {namespace:?}"),
    }
}

/// Reads the objects of a file, or of a directory's files.
fn read(path: &Path, sources: &mut Vec<Source>) -> Result<(), Error> {
    for path in files(path)? {
        let (text, mut objects) = (crate::pki::read(&path)?, Vec::new());
        match collect(&text, &mut objects) {
            Ok(()) => sources.push(Source { path, objects }),
            Err(reason) => return Err(Error::Manifest { path, reason }),
        }
    }
    Ok(())
}

/// Parses the objects of a text; lists are flattened.
fn collect(text: &str, objects: &mut Vec<Value>) -> Result<(), String> {
    for document in yaml::parse_documents(text.as_bytes()).map_err(|why| why.to_string())? {
        let is_list = document.str_at(&["kind"]).is_some_and(|kind| kind.ends_with("List"));
        match document.get("items").and_then(Value::as_array).filter(|_| is_list) {
            Some(items) => objects.extend_from_slice(items),
            None if document.is_null() => {}
            None if document.str_at(&["kind"]).is_some() => objects.push(document),
            None => return Err("a document has no `kind`".to_owned()),
        }
    }
    Ok(())
}

/// Returns the file itself, or the YAML and JSON files of the directory, sorted by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |why| Error::File { action: "read", path: path.to_owned(), why };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<usize, &str>) {
        let mut objects = Vec::new();
        let found = collect(text, &mut objects).map(|()| objects.len());
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn objects_are_found() {
        check("", Ok(0));
        check("---\n---\nkind: A\n---\n# nothing\n---\nkind: B\n", Ok(2));
        check(r#"{"kind": "List", "items": [{"kind": "A"}, {"kind": "B"}]}"#, Ok(2));
        check("kind: ConfigMapList\nitems: []\n", Ok(0));
        check("name: a", Err("a document has no `kind`"));
    }
}
