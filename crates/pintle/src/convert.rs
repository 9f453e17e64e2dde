//! `pintle convert`: reads objects in any encoding and writes them in another.
//!
//! The schema of the built-in kinds says what a field is; objects of other kinds are trees, which JSON
//! and YAML can hold.

use std::fs;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use pintle_schema::{TypeId, builtin, builtin_kind, conform, encode, protobuf};
use pintle_value::{Value, json, yaml};

/// Read objects in any encoding and write them in another
///
/// Files hold JSON, YAML (also several documents) or the Protobuf of the Kubernetes API, which is known
/// by how it begins. Objects are written as they are: nothing is added that a server would.
///
/// Examples:
///
///   pintle convert -f pod.yaml -o json
///   pintle convert -f manifests/ -f more.yaml -o yaml        all of them, as documents of one stream
///   kubectl get --raw /api/v1/namespaces/default | pintle convert -f - -o protobuf > default.pb
///   pintle convert -f default.pb
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Convert {
    /// What to read: a file, a directory (its .json, .yaml, .yml and .pb files), or - for standard input;
    /// may be repeated
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    filenames: Vec<PathBuf>,
    /// What to write. Several objects become a List in JSON and documents in YAML; Protobuf holds one
    #[arg(short, long, value_enum, value_name = "ENCODING", default_value = "yaml")]
    output: Output,
    /// What to do about fields that the kind does not have: refuse the object, or say so and leave them
    /// out, or only leave them out
    #[arg(long, value_enum, value_name = "HOW", default_value = "strict")]
    validate: Validate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Yaml,
    Protobuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Validate {
    Strict,
    Warn,
    Ignore,
}

/// The files of a directory that are read.
const EXTENSIONS: [&str; 4] = ["json", "yaml", "yml", "pb"];

impl Convert {
    /// Reads everything, then writes everything.
    pub(crate) fn run(&self) -> Result<()> {
        let mut objects = Vec::new();
        for path in self.paths()? {
            let bytes = read(&path)?;
            let found = self.objects(&bytes).with_context(|| name(&path))?;
            ensure!(!found.is_empty(), "{}: there is no object in it", name(&path));
            objects.extend(found);
        }
        ensure!(!objects.is_empty(), "there are no objects to convert");
        let mut out = Vec::new();
        self.output.write(&objects, &mut out)?;
        std::io::stdout().lock().write_all(&out).context("standard output")
    }

    /// The files, those of directories in the order of their names.
    fn paths(&self) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for given in &self.filenames {
            if given.as_os_str() == "-" || !given.is_dir() {
                paths.push(given.clone());
                continue;
            }
            let mut within = Vec::new();
            for entry in fs::read_dir(given).with_context(|| name(given))? {
                let path = entry?.path();
                let extension = path.extension().and_then(|extension| extension.to_str());
                if extension.is_some_and(|e| EXTENSIONS.contains(&e)) && path.is_file() {
                    within.push(path);
                }
            }
            let files = EXTENSIONS.map(|extension| format!(".{extension}")).join(", ");
            ensure!(!within.is_empty(), "{}: there is no {files} file in it", name(given));
            within.sort();
            paths.extend(within);
        }
        Ok(paths)
    }

    /// The objects in a file.
    fn objects(&self, bytes: &[u8]) -> Result<Vec<Object>> {
        if protobuf::is_message(bytes) {
            return Ok(vec![from_message(bytes)?]);
        }
        let mut objects = Vec::new();
        for (at, tree) in trees(bytes)?.into_iter().enumerate() {
            if tree.is_null() {
                continue; // an empty document
            }
            let object = self.object(tree).with_context(|| format!("document {}", at + 1))?;
            objects.push(object);
        }
        Ok(objects)
    }

    fn object(&self, mut tree: Value) -> Result<Object> {
        ensure!(tree.as_object().is_some(), "it is no object");
        let text = |key| tree.str_at(&[key]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
        ensure!(!kind.is_empty(), "it does not say its kind");
        let ty = builtin_kind(&api_version, &kind);
        if let Some(ty) = ty {
            let problems = conform(builtin(), ty, &mut tree)?;
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            match self.validate {
                Validate::Strict if !problems.is_empty() => bail!("{}", problems.join(", ")),
                Validate::Warn => problems.iter().for_each(|problem| warn(problem)),
                Validate::Strict | Validate::Ignore => {}
            }
        }
        Ok(Object { tree, ty, what: format!("{api_version} {kind}") })
    }
}

/// An object that was read.
struct Object {
    tree: Value,
    /// Its type, if its kind is a built-in one.
    ty: Option<TypeId>,
    /// Version and kind, for people.
    what: String,
}

impl Object {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self.ty {
            Some(ty) => encode::write_pretty(builtin(), ty, &self.tree, out),
            None => json::write_pretty(&self.tree, out),
        }
    }
}

impl Output {
    fn write(self, objects: &[Object], out: &mut Vec<u8>) -> Result<()> {
        match (self, objects) {
            (Self::Json, [object]) => object.write_json(out),
            (Self::Json, objects) => {
                let items = objects.iter().map(|object| object.tree.clone()).collect();
                let list = Value::from([
                    ("apiVersion", Value::from("v1")),
                    ("kind", Value::from("List")),
                    ("items", Value::Array(items)),
                ]);
                json::write_pretty(&list, out);
            }
            (Self::Yaml, objects) => {
                for (at, object) in objects.iter().enumerate() {
                    if at > 0 {
                        out.extend_from_slice(b"---\n");
                    }
                    yaml::write(&object.tree, out);
                }
                return Ok(());
            }
            (Self::Protobuf, [object]) => {
                let ty = object.ty.ok_or_else(|| {
                    anyhow!("{}: only built-in kinds have a Protobuf encoding", object.what)
                })?;
                protobuf::encode(builtin(), ty, &object.tree, out);
                return Ok(());
            }
            (Self::Protobuf, objects) => {
                bail!("Protobuf holds one object, and there are {}", objects.len())
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

fn from_message(bytes: &[u8]) -> Result<Object> {
    let (api_version, kind) = protobuf::type_meta(bytes)?;
    let what = format!("{api_version} {kind}");
    let ty = builtin_kind(&api_version, &kind)
        .ok_or_else(|| anyhow!("{what}: no such kind is known that has a Protobuf encoding"))?;
    Ok(Object { tree: protobuf::decode(builtin(), ty, bytes)?, ty: Some(ty), what })
}

/// JSON is YAML, but for what Go's reader of JSON forgives.
fn trees(bytes: &[u8]) -> Result<Vec<Value>> {
    match json::parse(bytes) {
        Ok(tree) => Ok(vec![tree]),
        Err(_) => Ok(yaml::parse_documents(bytes)?),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    if path.as_os_str() != "-" {
        return fs::read(path).with_context(|| name(path));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
    Ok(bytes)
}

fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

fn warn(problem: &str) {
    let _ = writeln!(std::io::stderr(), "pintle: warning: {problem}");
}

#[cfg(test)]
mod tests;
