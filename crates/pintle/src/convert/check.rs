//! `pintle convert --check`: which objects a release has no longer, and what takes their place.
//!
//! An object is told of for each version in which somebody still writes it: its own, that of the
//! configuration which `kubectl apply` keeps, those of its managers, and those in Helm's releases.

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
    /// The release serves all objects.
    #[default]
    Fine,
    /// Some are deprecated.
    Deprecated,
    /// Some are removed.
    Removed,
    /// Some could not be read, so nobody knows.
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
    /// The lines so far: a server has the same object in several groups.
    told: BTreeSet<String>,
}

/// Where an object is from.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    /// The file and the document, or the server.
    source: &'a str,
    /// Whether the version in which it came is one that somebody chose to write.
    is_written: bool,
}

/// The annotation in which `kubectl apply` keeps what it was given.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl<W: Write> Check<W> {
    pub(super) fn new(release: u32, out: W) -> Self {
        Self { release, out, worst: Verdict::Fine, told: BTreeSet::new() }
    }

    /// What the worst of the objects was.
    pub(super) fn verdict(&self) -> Verdict {
        self.worst
    }

    /// Checks an object of a file, or the objects of a list.
    pub(super) fn document(&mut self, (file, at): (&Path, usize), tree: &Value) -> Result<()> {
        let source = format!("{}: document {at}", super::name(file));
        self.written(&source, tree)
    }

    /// Checks every object of a server.
    pub(super) fn server(&mut self, server: &Server) -> Result<()> {
        let place = Place { source: "server", is_written: false };
        for collection in server.collections()? {
            let read = server.each(&collection, &mut |tree| self.object(place, &tree));
            if let Err(error) = read {
                self.unread(place.source, &collection.path, &error)?;
            }
        }
        Ok(())
    }

    fn written(&mut self, source: &str, tree: &Value) -> Result<()> {
        if kind(tree) == ("v1", "List") {
            let items = tree.get("items").and_then(Value::as_array).unwrap_or_default();
            return items.iter().try_for_each(|item| self.written(source, item));
        }
        self.object(Place { source, is_written: true }, tree)
    }

    fn object(&mut self, Place { source, is_written }: Place<'_>, tree: &Value) -> Result<()> {
        let (own, of) = kind(tree);
        let called = called(tree);
        if is_written {
            self.version(source, (own, of), &called, "")?;
        }
        let annotations = object::annotations(tree);
        let applied = annotations.and_then(|all| all.get(LAST_APPLIED)?.as_str());
        let applied = applied.and_then(|text| json::parse(text.as_bytes()).ok());
        let applied = applied.as_ref().map_or(("", ""), kind);
        if !(is_written && applied == (own, of)) {
            self.version(source, applied, &called, " (last applied)")?;
        }
        let managers = tree.at(&["metadata", "managedFields"]).and_then(Value::as_array);
        let mut told: Vec<&str> = vec![own, applied.0];
        for manager in managers.unwrap_or_default() {
            let version = manager.str_at(&["apiVersion"]).unwrap_or_default();
            if !told.contains(&version) {
                told.push(version);
                let by = manager.str_at(&["manager"]).unwrap_or_default();
                self.version(source, (version, of), &called, &format!(" (fields of {by:?})"))?;
            }
        }
        match helm::release(tree) {
            Ok(None) => Ok(()),
            Ok(Some(release)) => {
                let namespace = object::namespace(tree);
                let source = format!("{source}: Helm release {namespace}/{}", release.name);
                release.objects.iter().try_for_each(|tree| self.written(&source, tree))
            }
            Err(error) => self.unread(source, &format!("Helm release in {called}"), &error),
        }
    }

    /// Writes a line if the release has this version of a kind no longer, or calls it deprecated.
    fn version(
        &mut self,
        source: &str,
        (version, kind): (&str, &str),
        called: &str,
        how: &str,
    ) -> Result<()> {
        let life = life(version, kind).filter(|life| life.deprecated <= self.release);
        let Some(life) = life else { return Ok(()) };
        let (verdict, words) = words(life, self.release);
        self.worst = self.worst.max(verdict);
        self.tell(format!("{source}: {version} {kind} {called}{how}: {words}"))
    }

    fn unread(&mut self, source: &str, what: &str, error: &anyhow::Error) -> Result<()> {
        self.worst = Verdict::Unread;
        self.tell(format!("{source}: {what} cannot be read: {error:#}"))
    }

    fn tell(&mut self, line: String) -> Result<()> {
        if !self.told.contains(&line) {
            writeln!(self.out, "{line}").context("standard output")?;
            self.told.insert(line);
        }
        Ok(())
    }
}

/// The version and kind of an object.
fn kind(tree: &Value) -> (&str, &str) {
    let text = |member| tree.str_at(&[member]).unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

/// Namespace and name.
fn called(tree: &Value) -> String {
    let (namespace, name) = (object::namespace(tree), object::name(tree));
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{namespace}{slash}{name}")
}

/// What becomes of a version that is deprecated in a release.
fn words(life: Life, release: u32) -> (Verdict, String) {
    let (verdict, mut words) = match life.removed {
        Some(removed) if removed <= release => {
            (Verdict::Removed, format!("removed in v1.{removed}"))
        }
        Some(removed) => {
            let words = format!("deprecated in v1.{}, removed in v1.{removed}", life.deprecated);
            (Verdict::Deprecated, words)
        }
        None => (Verdict::Deprecated, format!("deprecated in v1.{}", life.deprecated)),
    };
    if !life.replacement.is_empty() {
        words.push_str(&format!("; use {}", life.replacement));
    }
    (verdict, words)
}
