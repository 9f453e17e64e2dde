//! `pintle convert`: reads objects in any encoding and writes them in another.
//!
//! Built-in kinds are decoded with their schema; objects of other kinds are trees, in JSON and YAML
//! only.

mod check;
mod documents;
mod helm;
mod live;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use pintle_kinds::versions::Versions;
use pintle_schema::{Schema, TypeId, any_kind, conform, encode, protobuf};
use pintle_value::{Value, json, yaml};

use check::{Check, release};
use documents::Document;
use live::Server;

/// Convert objects between encodings and API versions
///
/// Input files contain JSON, YAML (one or more documents) or the Protobuf of the Kubernetes API,
/// which is recognised by its first bytes. No defaults of a server are added. If two versions of a
/// kind have different defaults, the defaults of the old version are written out, so that the
/// object keeps its meaning. With --to or --output-version, a YAML document that does not change
/// keeps its text with its comments. Fields that the new version lacks, and reasons why a server
/// would refuse the object, are reported on standard error; the exit status is then 2.
///
/// With --check nothing is converted. A line is printed for each object in a version that a release
/// has removed or deprecated. The checked versions are the object's own, that of its last applied
/// configuration, those of its field managers, and those in Helm releases. The exit status is 3 if
/// a version is removed, 2 if a version is deprecated, and 1 if an object cannot be read. With
/// --check-server the objects of a running server are checked. kubectl reads them, with the
/// credentials of the kubeconfig.
///
/// Under the name kubectl-convert the program is the plugin `kubectl convert`: without a version,
/// objects are converted to the newest one.
///
/// Examples:
///
///   pintle convert -f pod.yaml -o json
///   pintle convert -f manifests/ -f more.yaml -o yaml        all objects, as one YAML stream
///   kubectl get --raw /api/v1/namespaces/default | pintle convert -f - -o protobuf > default.pb
///   pintle convert -f default.pb
///   pintle convert -f manifests/ --to v1.36                  each object in its newest version
///   pintle convert -f old.yaml --output-version apps/v1 --output-version networking.k8s.io/v1
///   pintle convert --check manifests/ --for v1.25            objects in versions that v1.25 lacks
///   pintle convert --check-server --context production       objects that clients write in old versions
///   ln -s $(command -v pintle) ~/bin/kubectl-convert; kubectl convert -f old.yaml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Convert {
    /// The input: a file, a directory (its .json, .yaml, .yml and .pb files), or - for standard
    /// input; may be repeated
    #[arg(short, long = "filename", value_name = "FILE", required_unless_present_any = ["check", "check_server"])]
    filenames: Vec<PathBuf>,
    /// The output encoding. Several objects become a List in JSON and documents in YAML; Protobuf
    /// output holds one object
    #[arg(short, long, value_enum, value_name = "ENCODING", default_value = "yaml")]
    output: Output,
    /// What to do with unknown fields: refuse the object (strict), remove them with a warning
    /// (warn), or remove them (ignore)
    #[arg(long, value_enum, value_name = "HOW", default_value = "strict")]
    validate: Validate,
    /// Also read the subdirectories of a directory
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Convert the objects whose kind has this version to it; may be repeated. Other objects are
    /// not converted
    #[arg(long, value_name = "GROUP/VERSION", conflicts_with_all = ["to", "check", "check_server"])]
    output_version: Vec<String>,
    /// Convert each object to the newest version that this release serves
    #[arg(long, value_name = "RELEASE", conflicts_with_all = ["check", "check_server"])]
    to: Option<String>,
    /// Check these files for versions that a release has removed or deprecated; a path as for -f,
    /// may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "filenames")]
    check: Vec<PathBuf>,
    /// Check the objects of the running server of kubectl's current context
    #[arg(long, conflicts_with = "filenames")]
    check_server: bool,
    /// The release to check for
    #[arg(
        long = "for",
        value_name = "RELEASE",
        default_value = "v1.36",
        conflicts_with = "filenames"
    )]
    release: String,
    /// The kubeconfig that kubectl reads for --check-server
    #[arg(long, value_name = "FILE", requires = "check_server")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", requires = "check_server")]
    context: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Yaml,
    Protobuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Validate {
    #[value(alias = "true")]
    Strict,
    Warn,
    #[value(alias = "false")]
    Ignore,
}

/// The limit of an input file.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// The limit of nested directories; deeper ones are not read.
const DIRECTORY_DEPTH_MAX: usize = 64;
/// The extensions of the files in a directory that are read.
const EXTENSIONS: [&str; 4] = ["json", "yaml", "yml", "pb"];

impl Convert {
    /// The command as `kubectl convert` calls it: without a version, objects are converted to the
    /// newest one.
    pub(crate) fn for_kubectl(self) -> Self {
        let has_version = self.to.is_some() || !self.output_version.is_empty();
        let is_check = self.check_server || !self.check.is_empty();
        let to =
            if has_version || is_check { self.to } else { Some(format!("v1.{}", check::NEWEST)) };
        Self { to, ..self }
    }

    /// Reads everything, then writes everything.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        if self.check_server || !self.check.is_empty() {
            return self.check();
        }
        let versions = self.versions()?;
        let mut objects = Vec::new();
        for path in paths(&self.filenames, self.recursive)? {
            let bytes = read(&path)?;
            let found = self.objects(&bytes).with_context(|| name(&path))?;
            ensure!(!found.is_empty(), "{}: contains no object", name(&path));
            objects.extend(found.into_iter().map(|object| (path.clone(), object)));
        }
        ensure!(!objects.is_empty(), "there are no objects to convert");
        let mut is_whole = true;
        let mut converted = Vec::with_capacity(objects.len());
        for (path, object) in objects {
            let Some(versions) = &versions else {
                converted.push(Object { text: None, ..object });
                continue;
            };
            let (object, problems) = self.converted(versions, object)?;
            is_whole &= problems.is_empty();
            problems.iter().for_each(|problem| warn(&format!("{}: {problem}", name(&path))));
            converted.push(object);
        }
        let mut out = Vec::new();
        self.output.write(&converted, &mut out)?;
        std::io::stdout().lock().write_all(&out).context("standard output")?;
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(NOT_WHOLE) })
    }

    /// Reports objects in versions that a release has removed or deprecated.
    fn check(&self) -> Result<ExitCode> {
        let mut check = Check::new(release(&self.release)?, std::io::stdout().lock());
        for path in paths(&self.check, self.recursive)? {
            let bytes = read(&path)?;
            let found = self.objects(&bytes).with_context(|| name(&path))?;
            for (at, object) in found.iter().enumerate() {
                check.document((&path, at + 1), &object.tree)?;
            }
        }
        if self.check_server {
            let (kubeconfig, context) = (self.kubeconfig.clone(), self.context.clone());
            check.server(&Server { kubeconfig, context })?;
        }
        Ok(ExitCode::from(check.verdict().code()))
    }

    /// All known versions, if objects are converted to another version.
    fn versions(&self) -> Result<Option<Versions>> {
        if let Some(text) = &self.to {
            ensure!(release(text)? == check::NEWEST, "{text}: only v1.{} is known", check::NEWEST);
        }
        let wanted = self.to.is_some() || !self.output_version.is_empty();
        Ok(if wanted { Some(Versions::all()?) } else { None })
    }

    /// The version to which objects of this version and kind are converted, if it is another one.
    fn wanted(&self, versions: &Versions, api_version: &str, kind: &str) -> Option<String> {
        let wanted = match self.to {
            Some(_) => versions.newest(api_version, kind)?,
            None if self.output_version.iter().any(|version| version == api_version) => {
                return None;
            }
            None => {
                let mut all = self.output_version.iter();
                all.find(|wanted| versions.can_convert((api_version, kind), wanted))?.clone()
            }
        };
        (wanted != api_version).then_some(wanted)
    }

    /// Converts an object to the wanted version, with warnings.
    fn converted(&self, versions: &Versions, object: Object) -> Result<(Object, Vec<String>)> {
        let mut problems = Vec::new();
        let tree = self.converted_tree(versions, &object.tree, &mut problems);
        let Some(tree) = tree else { return Ok((object, problems)) };
        let made = Object::new(tree)?;
        Ok((made, problems))
    }

    /// Converts an object or the items of a list; `None` if nothing changes.
    fn converted_tree(
        &self,
        versions: &Versions,
        tree: &Value,
        problems: &mut Vec<String>,
    ) -> Option<Value> {
        let text = |member| tree.str_at(&[member]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if (api_version, kind) == ("v1", "List") {
            let items = tree.get("items").and_then(Value::as_array).unwrap_or_default();
            let made = items.iter().map(|item| self.converted_tree(versions, item, problems));
            let made: Vec<Option<Value>> = made.collect();
            made.iter().any(Option::is_some).then_some(())?;
            let made = made.into_iter().zip(items);
            let items: Vec<Value> =
                made.map(|(made, item)| made.unwrap_or_else(|| item.clone())).collect();
            let mut list = tree.clone();
            list.make_object().insert("items", items);
            return Some(list);
        }
        let wanted = self.wanted(versions, api_version, kind)?;
        let made = versions.convert(tree, &wanted)?;
        let what = format!("{api_version} {kind} {}", pintle_meta::object::name(tree));
        let lost = made.lost.iter().map(|path| format!("{what}: {wanted} has no {path}"));
        problems.extend(lost);
        let refused = made.refused.iter().map(|why| format!("{what}: {wanted} refuses it: {why}"));
        problems.extend(refused);
        Some(made.object)
    }

    /// The objects in a file.
    fn objects(&self, bytes: &[u8]) -> Result<Vec<Object>> {
        if protobuf::is_message(bytes) {
            return Ok(vec![from_message(bytes)?]);
        }
        let documents = documents::read(bytes)?.into_iter().enumerate();
        let objects = documents.map(|(at, document)| {
            self.object(document).with_context(|| format!("document {}", at + 1))
        });
        objects.collect()
    }

    fn object(&self, document: Document) -> Result<Object> {
        let mut object = Object { text: document.text, ..Object::new(document.tree)? };
        if let Some((schema, ty)) = object.ty {
            let problems = conform(schema, ty, &mut object.tree)?;
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            match self.validate {
                Validate::Strict if !problems.is_empty() => bail!("{}", problems.join(", ")),
                Validate::Warn => problems.iter().for_each(|problem| warn(problem)),
                Validate::Strict | Validate::Ignore => {}
            }
        }
        Ok(object)
    }
}

/// The exit code if an object could not be converted completely.
const NOT_WHOLE: u8 = 2;

/// The files that the paths name; those of a directory are sorted by path.
fn paths(given: &[PathBuf], is_recursive: bool) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for given in given {
        if given.as_os_str() == "-" || !given.is_dir() {
            paths.push(given.clone());
            continue;
        }
        let depth_max = if is_recursive { DIRECTORY_DEPTH_MAX } else { 0 };
        let mut within = Vec::new();
        collect(given, depth_max, &mut within)?;
        let files = EXTENSIONS.map(|extension| format!(".{extension}")).join(", ");
        ensure!(!within.is_empty(), "{}: contains no {files} file", name(given));
        within.sort();
        paths.extend(within);
    }
    Ok(paths)
}

/// Adds the files of a directory and its subdirectories. Links to directories are not followed, so
/// there are no cycles.
fn collect(directory: &Path, depth_max: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| name(directory))? {
        let entry = entry?;
        let path = entry.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if depth_max > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&path, depth_max - 1, files)?;
        } else if extension.is_some_and(|e| EXTENSIONS.contains(&e)) && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// An object that was read.
struct Object {
    tree: Value,
    /// The schema type, if the kind is built in in any release.
    ty: Option<(&'static Schema, TypeId)>,
    /// Version and kind, for messages.
    what: String,
    /// The source text, if it is written unchanged.
    text: Option<String>,
}

impl Object {
    fn new(tree: Value) -> Result<Self> {
        ensure!(tree.as_object().is_some(), "must be an object");
        let text = |key| tree.str_at(&[key]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        ensure!(!kind.is_empty(), "kind: Required value");
        let what = format!("{api_version} {kind}");
        Ok(Self { ty: any_kind(api_version, kind), tree, what, text: None })
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        match self.ty {
            Some((schema, ty)) => encode::write_pretty(schema, ty, &self.tree, out),
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
                    match &object.text {
                        Some(text) => out.extend_from_slice(text.as_bytes()),
                        None => yaml::write(&object.tree, out),
                    }
                }
                return Ok(());
            }
            (Self::Protobuf, [object]) => {
                let (schema, ty) = object.ty.ok_or_else(|| {
                    anyhow!("{}: only built-in kinds have a Protobuf encoding", object.what)
                })?;
                protobuf::encode(schema, ty, &object.tree, out);
                return Ok(());
            }
            (Self::Protobuf, objects) => {
                bail!("Protobuf output holds one object, and the input has {}", objects.len())
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

fn from_message(bytes: &[u8]) -> Result<Object> {
    let (api_version, kind) = protobuf::type_meta(bytes)?;
    let what = format!("{api_version} {kind}");
    let (schema, ty) = any_kind(&api_version, &kind).ok_or_else(|| {
        anyhow!("{what}: unknown kind; only built-in kinds have a Protobuf encoding")
    })?;
    let tree = protobuf::decode(schema, ty, bytes)?;
    Ok(Object { tree, ty: Some((schema, ty)), what, text: None })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(fs::File::open(path).with_context(|| name(path))?)
    };
    let mut bytes = Vec::new();
    source.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).with_context(|| name(path))?;
    let is_bounded = u64::try_from(bytes.len()).is_ok_and(|bytes| bytes <= FILE_BYTES_MAX);
    ensure!(is_bounded, "{}: is larger than {} MiB", name(path), FILE_BYTES_MAX >> 20);
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
