//! Manifests of crates: the direction of dependencies, and the workspace's lints.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// Dependencies that only these crates may have.
const RESERVED: &[(&[&str], &[&str])] = &[
    (&["pintle-server", "pintle-etcd", "pintle-grpc"], &["hyper", "hyper-util"]),
    (&["pintle-server", "pintle-etcd"], &["rustls", "tokio-rustls"]),
    (&["pintle-server", "pintle-etcd", "pintle-grpc", "pintle-encryption"], &["prost"]),
    (&["pintle-store"], &["fjall", "redb"]),
    (&["pintle-descriptions"], &["k8s-openapi", "schemars"]),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None` for normal ones, else `dev` or `build`.
    kind: Option<String>,
}

/// Returns the offences in the workspace's manifests.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let packages = packages(root)?;
    let page = fs::read_to_string(root.join("docs/architecture.md"))?;
    let order = code_map(&page);
    ensure!(!order.is_empty(), "docs/architecture.md has no code map");
    let mut offences = Vec::new();
    for package in &packages {
        let manifest = fs::read_to_string(&package.manifest_path)?;
        if !inherits_lints(&manifest) && !UNSAFE.contains(&&*package.name) {
            offences.push(format!("{}: does not inherit the workspace's lints", package.name));
        }
        let in_crates = package.manifest_path.starts_with(root.join("crates"));
        if in_crates && !order.contains_key(package.name.as_str()) {
            offences.push(format!("{}: not in the code map", package.name));
        }
        let used = package.dependencies.iter().filter(|d| d.kind.as_deref() != Some("dev"));
        let used = used.map(|d| d.name.as_str());
        offences.extend(used.filter_map(|d| offence(&order, &package.name, d)));
    }
    let known = |name: &str| packages.iter().any(|p| p.name == name);
    let unknown = order.keys().filter(|name| !known(name));
    offences.extend(unknown.map(|name| format!("{name}: in the code map, but no crate")));
    Ok(offences)
}

/// Returns the offence of a crate's dependency on another. Crates outside the code map are tools.
fn offence(order: &BTreeMap<&str, usize>, name: &str, dependency: &str) -> Option<String> {
    let position = order.get(name)?;
    if order.get(dependency).is_some_and(|d| d <= position) {
        return Some(format!("{name}: depends on {dependency}, which is not below it"));
    }
    let reserved = RESERVED.iter().find(|(_, names)| names.contains(&dependency));
    let (owners, _) = reserved.filter(|(owners, _)| !owners.contains(&name))?;
    let owners = owners.join(" and ");
    Some(format!("{name}: depends on {dependency}, which is for {owners} alone"))
}

/// The crates of the code map and their positions in it, from the top.
fn code_map(page: &str) -> BTreeMap<&str, usize> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let crates = rows.map(|(name, _)| name).filter(|name| name.starts_with("pintle"));
    crates.enumerate().map(|(position, name)| (name, position)).collect()
}

/// The crates with their own lints, because they have unsafe code:
/// docs/decisions/0008-code-pages.md and 0013-musl.md.
const UNSAFE: [&str; 2] = ["pintle-pages", "pintle-musl"];

fn inherits_lints(manifest: &str) -> bool {
    let lines: Vec<&str> = manifest.lines().map(str::trim).collect();
    lines.windows(2).any(|pair| pair == ["[lints]", "workspace = true"])
}

fn packages(root: &Path) -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    Ok(metadata.packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
| crate | what it is | must not know |
|---|---|---|
| `pintle` | the program | a |
| `pintle-server` | HTTP | b |
| `pintle-store` | the store | c |

Beside them: `xtask`.
";

    #[test]
    fn dependencies_point_down() {
        let order = code_map(PAGE);
        let check = |name, dependency, expected: Option<&str>| {
            assert_eq!(offence(&order, name, dependency).as_deref(), expected);
        };
        check("pintle", "pintle-server", None);
        check("pintle-server", "pintle-store", None);
        check("pintle-server", "hyper", None);
        check("xtask", "hyper", None);
        check(
            "pintle-store",
            "pintle-server",
            Some("pintle-store: depends on pintle-server, which is not below it"),
        );
        check(
            "pintle",
            "rustls",
            Some("pintle: depends on rustls, which is for pintle-server and pintle-etcd alone"),
        );
        check("pintle", "redb", Some("pintle: depends on redb, which is for pintle-store alone"));
    }

    #[test]
    fn lints_are_inherited_or_not() {
        assert!(inherits_lints("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"));
        assert!(!inherits_lints("[package]\nname = \"a\"\n\n[dependencies]\n"));
    }
}
