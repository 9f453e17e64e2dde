//! `pintle convert --check`: lists objects in versions that a release deprecates or no longer
//! serves, with the replacements.
//!
//! An object is reported for each version in which a client still writes it: its own version, the
//! version of its last-applied configuration, the versions of its field managers, and the versions
//! in Helm releases.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use pintle_kinds::versions::{Life, life};
use pintle_meta::object;
use pintle_value::{Value, json};

use super::helm;
use super::live::Server;

/// The minor release of Kubernetes 1 that this program implements.
pub(super) const NEWEST: u32 = pintle_kinds::NEWEST_MINOR;

/// The worst finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// The release serves the versions of all objects, and deprecates none.
    #[default]
    Fine,
    /// Some are deprecated.
    Deprecated,
    /// Some are removed.
    Removed,
    /// Some could not be read.
    Unread,
}

impl Verdict {
    /// The program's exit code.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Deprecated => 2,
            Self::Removed => 3,
            Self::Unread => 1,
        }
    }
}

/// Parses a release like `v1.25`.
pub(super) fn release(text: &str) -> Result<u32> {
    let minor = text.trim_start_matches('v').strip_prefix("1.");
    let minor = minor.and_then(|rest| rest.split('.').next()?.parse().ok());
    let minor = minor.ok_or_else(|| anyhow!("{text}: a release is written like v1.{NEWEST}"))?;
    ensure!(minor <= NEWEST, "{text}: the newest release that is known is v1.{NEWEST}");
    Ok(minor)
}

/// A check of many objects.
pub(super) struct Check<W> {
    release: u32,
    out: W,
    worst: Verdict,
    /// The lines that were written. A line is written once, although a server has the same object
    /// in several groups.
    reported: BTreeSet<String>,
}

/// The origin of an object.
#[derive(Clone, Copy, Debug)]
struct Origin<'a> {
    /// The file and the document, or `server`.
    name: &'a str,
    /// Whether a person or a program chose the object's version; a server returns the version that
    /// was requested.
    has_chosen_version: bool,
}

/// The annotation in which `kubectl apply` stores its last configuration.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl<W: Write> Check<W> {
    pub(super) fn new(release: u32, out: W) -> Self {
        Self { release, out, worst: Verdict::Fine, reported: BTreeSet::new() }
    }

    /// The worst finding so far.
    pub(super) fn verdict(&self) -> Verdict {
        self.worst
    }

    /// Checks an object of a file, or the objects of a list.
    pub(super) fn document(&mut self, (file, at): (&Path, usize), tree: &Value) -> Result<()> {
        let source = format!("{}: document {at}", super::name(file));
        self.manifest(&source, tree)
    }

    /// Checks the objects of a server; of its secrets, only those with Helm releases.
    pub(super) fn server(&mut self, server: &Server) -> Result<()> {
        let origin = Origin { name: "server", has_chosen_version: false };
        for collection in server.collections()? {
            let read = server.each(&collection, &mut |tree| self.object(origin, &tree));
            if let Err(error) = read {
                self.unread(origin.name, &collection.path, &error)?;
            }
        }
        Ok(())
    }

    fn manifest(&mut self, source: &str, tree: &Value) -> Result<()> {
        if kind(tree) == ("v1", "List") {
            let items = tree.get("items").and_then(Value::as_array).unwrap_or_default();
            return items.iter().try_for_each(|item| self.manifest(source, item));
        }
        self.object(Origin { name: source, has_chosen_version: true }, tree)
    }

    fn object(&mut self, origin: Origin<'_>, tree: &Value) -> Result<()> {
        let (own, of) = kind(tree);
        let Origin { name: source, has_chosen_version } = origin;
        let name = namespaced_name(tree);
        if has_chosen_version {
            self.version(source, (own, of), &name, "")?;
        }
        let annotations = object::annotations(tree);
        let applied = annotations.and_then(|all| all.get(LAST_APPLIED)?.as_str());
        let applied = applied.and_then(|text| json::parse(text.as_bytes()).ok());
        let applied = applied.as_ref().map_or(("", ""), kind);
        if !(has_chosen_version && applied == (own, of)) {
            self.version(source, applied, &name, " (last applied)")?;
        }
        let managers = tree.at(&["metadata", "managedFields"]).and_then(Value::as_array);
        let mut versions: Vec<&str> = vec![own, applied.0];
        for manager in managers.unwrap_or_default() {
            let version = manager.str_at(&["apiVersion"]).unwrap_or_default();
            if !versions.contains(&version) {
                versions.push(version);
                let manager = manager.str_at(&["manager"]).unwrap_or_default();
                self.version(source, (version, of), &name, &format!(" (fields of {manager:?})"))?;
            }
        }
        match helm::release(tree) {
            Ok(None) => Ok(()),
            Ok(Some(release)) => {
                let namespace = object::namespace(tree);
                let source = format!("{source}: Helm release {namespace}/{}", release.name);
                release.objects.iter().try_for_each(|tree| self.manifest(&source, tree))
            }
            Err(error) => self.unread(source, &format!("Helm release in {name}"), &error),
        }
    }

    /// Writes a line if this version of a kind is removed or deprecated in the release.
    fn version(
        &mut self,
        source: &str,
        (version, kind): (&str, &str),
        name: &str,
        use_of_version: &str,
    ) -> Result<()> {
        let life = life(version, kind).filter(|life| life.deprecated <= self.release);
        let Some(life) = life else { return Ok(()) };
        let (verdict, message) = verdict(life, self.release);
        self.worst = self.worst.max(verdict);
        self.report(format!("{source}: {version} {kind} {name}{use_of_version}: {message}"))
    }

    fn unread(&mut self, source: &str, what: &str, error: &anyhow::Error) -> Result<()> {
        self.worst = Verdict::Unread;
        self.report(format!("{source}: {what} cannot be read: {error:#}"))
    }

    fn report(&mut self, line: String) -> Result<()> {
        if !self.reported.contains(&line) {
            writeln!(self.out, "{line}").context("standard output")?;
            self.reported.insert(line);
        }
        Ok(())
    }
}

/// The version and kind of an object.
fn kind(tree: &Value) -> (&str, &str) {
    let text = |member| tree.str_at(&[member]).unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

/// `namespace/name`, or the name of an object without a namespace.
fn namespaced_name(tree: &Value) -> String {
    let (namespace, name) = (object::namespace(tree), object::name(tree));
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{namespace}{slash}{name}")
}

/// The verdict about a version that is deprecated in a release, with a message.
fn verdict(life: Life, release: u32) -> (Verdict, String) {
    let (verdict, mut message) = match life.removed {
        Some(removed) if removed <= release => {
            (Verdict::Removed, format!("removed in v1.{removed}"))
        }
        Some(removed) => {
            let message = format!("deprecated in v1.{}, removed in v1.{removed}", life.deprecated);
            (Verdict::Deprecated, message)
        }
        None => (Verdict::Deprecated, format!("deprecated in v1.{}", life.deprecated)),
    };
    if !life.replacement.is_empty() {
        message.push_str(&format!("; use {}", life.replacement));
    }
    (verdict, message)
}
