//! The crates that the program is made of: their licences, and the bill of materials.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::json;
use spdx::{Expression, ParseMode};

use super::VERSION;

/// Licences that crates may have, as SPDX names them. None asks more than that its text and its author's name go
/// with the program; MPL-2.0 also that changes of its own files are published.
const ALLOWED: [&str; 12] = [
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// How files with licences and notices begin.
const LICENCE_FILES: [&str; 6] =
    ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE", "UNLICENSE"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Option<Resolve>,
}

#[derive(Clone, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    /// `None` for a crate of this repository.
    source: Option<String>,
    manifest_path: PathBuf,
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

/// The crates of others that the program contains, with what each depends on.
pub(crate) struct Components {
    packages: Vec<Package>,
    dependencies: BTreeMap<String, BTreeSet<String>>,
}

/// What is wrong with the licences of all crates, those of tests included.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut packages = metadata(root, &[])?.packages;
    packages.retain(|package| package.source.is_some());
    Ok(packages.iter().filter_map(offence).collect())
}

fn offence(package: &Package) -> Option<String> {
    let Package { name, version, license, .. } = package;
    let Some(license) = license else { return Some(format!("{name} {version}: names no licence")) };
    match Expression::parse_mode(license, ParseMode::LAX) {
        Err(error) => Some(format!("{name} {version}: {license}: {}", error.reason)),
        Ok(expression) => {
            let is_allowed = expression.evaluate(|requirement| {
                requirement.license.id().is_some_and(|id| ALLOWED.contains(&id.name))
            });
            (!is_allowed).then(|| format!("{name} {version}: the licence {license} is not allowed"))
        }
    }
}

fn metadata(root: &Path, arguments: &[&str]) -> Result<Metadata> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .args(arguments)
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    ensure!(cargo.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&cargo.stderr));
    Ok(serde_json::from_slice(&cargo.stdout)?)
}

impl Components {
    /// The crates that the program contains on a target.
    pub(super) fn of_program(root: &Path, triple: &str) -> Result<Self> {
        let metadata = metadata(root, &["--filter-platform", triple])?;
        let nodes = metadata.resolve.map(|resolve| resolve.nodes).unwrap_or_default();
        let normal =
            |dependency: &&Dependency| dependency.dep_kinds.iter().any(|it| it.kind.is_none());
        let dependencies: BTreeMap<String, BTreeSet<String>> = nodes
            .iter()
            .map(|node| {
                let names =
                    node.deps.iter().filter(normal).map(|dependency| dependency.pkg.clone());
                (node.id.clone(), names.collect())
            })
            .collect();
        let program = metadata.packages.iter().find(|package| package.name == "pintle");
        let mut due = vec![program.context("a crate `pintle`")?.id.clone()];
        let mut reached = BTreeSet::new();
        while let Some(id) = due.pop() {
            if reached.insert(id.clone()) {
                due.extend(dependencies.get(&id).into_iter().flatten().cloned());
            }
        }
        let mut packages = metadata.packages;
        packages.retain(|package| package.source.is_some() && reached.contains(&package.id));
        packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        Ok(Self { packages, dependencies })
    }

    /// The bill of materials, in CycloneDX's form.
    pub(super) fn bill(&self) -> Result<String> {
        let url = |package: &Package| format!("pkg:cargo/{}@{}", package.name, package.version);
        let urls: BTreeMap<&str, String> =
            self.packages.iter().map(|package| (&*package.id, url(package))).collect();
        let components: Vec<_> = self.packages.iter().map(|package| json!({
            "type": "library",
            "bom-ref": url(package),
            "name": package.name,
            "version": package.version,
            "purl": url(package),
            "licenses": [{"expression": package.license.as_deref().map(|text| text.replace('/', " OR "))}],
            "externalReferences": package.repository.iter()
                .map(|url| json!({"type": "vcs", "url": url})).collect::<Vec<_>>(),
        })).collect();
        let dependencies: Vec<_> = self
            .packages
            .iter()
            .map(|package| {
                json!({
                    "ref": url(package),
                    "dependsOn": self.dependencies.get(&package.id).into_iter().flatten()
                        .filter_map(|id| urls.get(id.as_str())).collect::<Vec<_>>(),
                })
            })
            .collect();
        let bill = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": {"type": "application", "name": "pintle", "version": VERSION,
                "licenses": [{"expression": "Apache-2.0"}]}},
            "components": components,
            "dependencies": dependencies,
        });
        Ok(serde_json::to_string_pretty(&bill)? + "\n")
    }

    /// The texts of all licences, each once, after the names of the crates that have it.
    pub(super) fn licence_texts(&self) -> Result<String> {
        let mut crates_by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for package in &self.packages {
            let name = format!("{} {}", package.name, package.version);
            for text in texts(package)? {
                crates_by_text.entry(text).or_default().push(name.clone());
            }
        }
        let mut sections: Vec<(Vec<String>, String)> =
            crates_by_text.into_iter().map(|(text, crates)| (crates, text)).collect();
        sections.sort();
        let mut all = "Pintle contains these crates, under their licences:\n".to_owned();
        for package in &self.packages {
            let license = package.license.as_deref().unwrap_or_default();
            all.push_str(&format!("\n{} {}: {license}", package.name, package.version));
        }
        for (crates, text) in sections {
            all.push_str(&format!(
                "\n\n{}\n{}\n\n{}",
                "=".repeat(80),
                crates.join(", "),
                text.trim()
            ));
        }
        Ok(all + "\n")
    }
}

/// The licences and notices beside a crate's manifest.
fn texts(package: &Package) -> Result<Vec<String>> {
    let directory = package.manifest_path.parent().context("a manifest is in a directory")?;
    let mut found = Vec::new();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if LICENCE_FILES.iter().any(|start| name.starts_with(start)) && path.is_file() {
            found.push(String::from_utf8_lossy(&fs::read(&path)?).into_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_that_are_not_allowed_are_offences() {
        for (license, is_allowed) in [
            (Some("MIT/Apache-2.0"), true),
            (Some("(MIT OR GPL-3.0-only) AND ISC"), true),
            (Some("MPL-2.0+"), true),
            (Some("Apache-2.0 WITH LLVM-exception"), true),
            (Some("GPL-3.0-only"), false),
            (Some("MIT AND GPL-3.0-only"), false),
            (Some("all rights reserved"), false),
            (None, false),
        ] {
            let package = Package {
                id: String::new(),
                name: "crate".to_owned(),
                version: "1.0.0".to_owned(),
                license: license.map(str::to_owned),
                repository: None,
                source: None,
                manifest_path: PathBuf::new(),
            };
            assert_eq!(offence(&package).is_none(), is_allowed, "{license:?}");
        }
    }
}
