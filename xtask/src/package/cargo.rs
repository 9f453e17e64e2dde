//! The crates of the workspace and of others, as cargo reports them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
    resolve: Option<Resolve>,
}

#[derive(Clone, Deserialize)]
pub(super) struct Package {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: String,
    /// An expression of SPDX, or an older form of one with `/` for `OR`.
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    /// Where the crate comes from; `None` for a crate of this repository.
    pub(super) source: Option<String>,
    pub(super) manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `None` for normal ones, else `dev` or `build`.
    kind: Option<String>,
}

impl Metadata {
    /// The crates of the workspace and of others, as a build for the target needs them.
    pub(super) fn read(root: &Path, triple: &str) -> Result<Self> {
        let arguments = ["metadata", "--format-version=1", "--locked", "--filter-platform", triple];
        let mut metadata: Self = serde_json::from_slice(&cargo(root, &arguments)?)?;
        let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        let needed: BTreeSet<&str> = nodes.map(|node| node.id.as_str()).collect();
        metadata.packages.retain(|package| needed.contains(package.id.as_str()));
        Ok(metadata)
    }

    /// The dependencies of each crate, without those of its tests and of its build script.
    pub(super) fn dependencies(&self) -> BTreeMap<&str, Vec<&str>> {
        let nodes = self.resolve.iter().flat_map(|resolve| &resolve.nodes);
        let normal =
            |dependency: &&Dependency| dependency.dep_kinds.iter().any(|it| it.kind.is_none());
        nodes
            .map(|node| {
                let ids = node.deps.iter().filter(normal).map(|dependency| &*dependency.pkg);
                (node.id.as_str(), ids.collect())
            })
            .collect()
    }
}

/// The names and versions of the crates whose code the program `pintle` contains on a target: with
/// the features that it enables, without crates that only run during the build.
pub(super) fn crates_of_program(root: &Path, triple: &str) -> Result<BTreeSet<(String, String)>> {
    let arguments = [
        "tree",
        "--locked",
        "--package=pintle",
        "--edges=normal,no-proc-macro",
        "--target",
        triple,
        "--prefix=none",
        "--format={p}",
    ];
    let lines = String::from_utf8(cargo(root, &arguments)?)?;
    let words = lines.lines().filter(|line| !line.is_empty()).map(|line| {
        let mut words = line.split(' ');
        let name = words.next().context("a name")?;
        let version = words.next().and_then(|word| word.strip_prefix('v')).context(name.to_owned());
        Ok((name.to_owned(), version?.to_owned()))
    });
    words.collect()
}

/// The target that this machine's own programs are built for.
pub(super) fn host_triple() -> Result<String> {
    rustc_says("host: ")
}

/// The release of rustc, for example `1.95.0`.
pub(super) fn rustc_release() -> Result<String> {
    rustc_says("release: ")
}

/// The path of a tool that comes with rustc, whether it is installed or not.
pub(super) fn sysroot_tool(name: &str) -> Result<PathBuf> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().context("rustc")?;
    let sysroot = PathBuf::from(String::from_utf8(sysroot.stdout)?.trim_end());
    Ok(sysroot.join("lib/rustlib").join(host_triple()?).join("bin").join(name))
}

/// A line of `rustc -vV`, after its beginning.
fn rustc_says(beginning: &str) -> Result<String> {
    let rustc = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let text = String::from_utf8(rustc.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix(beginning));
    Ok(line.with_context(|| format!("rustc prints no {beginning}"))?.to_owned())
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root)
        .output()
        .context(format!("cargo {}", arguments[0]))?;
    ensure!(
        output.status.success(),
        "cargo {}: {}",
        arguments[0],
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}
