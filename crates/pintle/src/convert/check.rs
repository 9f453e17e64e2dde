//! `pintle convert --check`: reports objects that a release does not serve, and their replacements.

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use pintle_kinds::versions::life;
use pintle_meta::object;
use pintle_value::Value;

/// The minor release of Kubernetes that this program implements.
pub(super) const NEWEST: u32 = 36;

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
}

impl Verdict {
    /// The program's exit code.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Deprecated => 2,
            Self::Removed => 3,
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

/// Writes a line for each object that the release has removed or deprecated.
pub(super) fn check(
    (file, at): (&Path, usize),
    tree: &Value,
    release: u32,
    out: &mut impl Write,
) -> Result<Verdict> {
    let text = |member| tree.str_at(&[member]).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if kind == "List" && version == "v1" {
        let items = tree.get("items").and_then(Value::as_array).unwrap_or_default();
        let mut worst = Verdict::Fine;
        for item in items {
            worst = worst.max(check((file, at), item, release, out)?);
        }
        return Ok(worst);
    }
    let Some(life) = life(version, kind).filter(|life| life.deprecated <= release) else {
        return Ok(Verdict::Fine);
    };
    let namespace = object::namespace(tree);
    let slash = if namespace.is_empty() { "" } else { "/" };
    let name = object::name(tree);
    let gone = life.removed.filter(|removed| *removed <= release);
    let (verdict, mut words) = match (gone, life.removed) {
        (Some(removed), _) => (Verdict::Removed, format!("removed in v1.{removed}")),
        (None, Some(removed)) => {
            let words = format!("deprecated in v1.{}, removed in v1.{removed}", life.deprecated);
            (Verdict::Deprecated, words)
        }
        (None, None) => (Verdict::Deprecated, format!("deprecated in v1.{}", life.deprecated)),
    };
    if !life.replacement.is_empty() {
        words.push_str(&format!("; use {}", life.replacement));
    }
    let file = super::name(file);
    writeln!(out, "{file}: document {at}: {version} {kind} {namespace}{slash}{name}: {words}")
        .context("standard output")?;
    Ok(verdict)
}
