//! The crates and libraries of others in the program: their licences, and the bill of materials.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::VERSION;
use super::cargo::{Metadata, Package, crates_of_program};

/// How files with licences and notices begin.
const LICENCE_FILES: [&str; 6] =
    ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE", "UNLICENSE"];

/// A library that no manifest of cargo names.
struct Library {
    name: &'static str,
    license: &'static str,
    text: Text,
}

/// Where the licence of a library is.
enum Text {
    /// In the crate that contains the library.
    Inside { package: &'static str, path: &'static str },
    /// In this repository.
    Here(&'static str),
}

/// The libraries that are linked with the crates.
const LIBRARIES: [Library; 3] = [
    Library {
        name: "jemalloc",
        license: "BSD-2-Clause",
        text: Text::Inside { package: "tikv-jemalloc-sys", path: "jemalloc/COPYING" },
    },
    Library {
        name: "musl",
        license: "MIT AND BSD-2-Clause AND BSD-3-Clause AND ISC",
        text: Text::Here("packaging/licences/musl"),
    },
    Library {
        name: "rust-std",
        license: "MIT OR Apache-2.0",
        text: Text::Here("packaging/licences/rust"),
    },
];

/// The crates of others that the program contains.
pub(super) struct Components {
    root: PathBuf,
    packages: Vec<Package>,
    /// The dependencies of each crate, by id.
    dependencies: BTreeMap<String, BTreeSet<String>>,
}

impl Components {
    /// The components of the program on a target.
    pub(super) fn of_program(root: &Path, triple: &str) -> Result<Self> {
        let metadata = Metadata::read(root, triple)?;
        let within = crates_of_program(root, triple)?;
        let is_within = |package: &&Package| {
            package.source.is_some()
                && within.contains(&(package.name.clone(), package.version.clone()))
        };
        let mut packages: Vec<Package> =
            metadata.packages.iter().filter(is_within).cloned().collect();
        packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        ensure!(!packages.is_empty(), "cargo tree names no crate");
        let mut known = metadata.dependencies();
        let dependencies = packages.iter().map(|package| {
            let ids = known.remove(&*package.id).unwrap_or_default();
            (package.id.clone(), ids.into_iter().map(str::to_owned).collect())
        });
        Ok(Self { root: root.to_owned(), dependencies: dependencies.collect(), packages })
    }

    /// The bill of materials, in CycloneDX's form.
    pub(super) fn bill(&self) -> Result<String> {
        let references: BTreeMap<&str, String> =
            self.packages.iter().map(|package| (&*package.id, reference(package))).collect();
        let components = self.packages.iter().map(component).chain(LIBRARIES.iter().map(|it| {
            let license = json!([{"expression": it.license}]);
            json!({"type": "library", "bom-ref": it.name, "name": it.name, "licenses": license})
        }));
        let dependencies = self.packages.iter().map(|package| {
            let ids = self.dependencies.get(&package.id).into_iter().flatten();
            let references: Vec<_> = ids.filter_map(|id| references.get(id.as_str())).collect();
            json!({"ref": reference(package), "dependsOn": references})
        });
        let bill = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": {
                "type": "application", "bom-ref": "pintle", "name": "pintle", "version": VERSION,
                "licenses": [{"expression": "Apache-2.0"}],
            }},
            "components": components.collect::<Vec<Value>>(),
            "dependencies": dependencies.collect::<Vec<Value>>(),
        });
        Ok(serde_json::to_string_pretty(&bill)? + "\n")
    }

    /// The texts of all licences, each once, after the names of the components that have it.
    pub(super) fn licence_texts(&self) -> Result<String> {
        let mut names_by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut all =
            "Pintle contains these crates and libraries, under their licences:\n".to_owned();
        for package in &self.packages {
            let name = format!("{} {}", package.name, package.version);
            all.push_str(&format!("\n{name}: {}", expression(package)));
            for text in texts(package)? {
                names_by_text.entry(text).or_default().push(name.clone());
            }
        }
        for library in &LIBRARIES {
            all.push_str(&format!("\n{}: {}", library.name, library.license));
            names_by_text.entry(self.text(library)?).or_default().push(library.name.to_owned());
        }
        let mut sections: Vec<(Vec<String>, String)> =
            names_by_text.into_iter().map(|(text, names)| (names, text)).collect();
        sections.sort();
        for (names, text) in sections {
            let names = names.join(", ");
            all.push_str(&format!("\n\n{}\n{names}\n\n{}", "=".repeat(80), text.trim()));
        }
        Ok(all + "\n")
    }

    /// The licence of a library.
    fn text(&self, library: &Library) -> Result<String> {
        let path = match library.text {
            Text::Here(path) => self.root.join(path),
            Text::Inside { package, path } => {
                let found = self.packages.iter().find(|it| it.name == package);
                directory(found.with_context(|| format!("no crate {package}"))?)?.join(path)
            }
        };
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

/// The name of a crate in all bills of materials.
fn reference(package: &Package) -> String {
    // A `+` means a space in some readers of package URLs.
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

fn component(package: &Package) -> Value {
    let repository = package.repository.iter().map(|url| json!({"type": "vcs", "url": url}));
    json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
        "purl": reference(package),
        "licenses": [{"expression": expression(package)}],
        "externalReferences": repository.collect::<Vec<_>>(),
    })
}

/// The licence of a crate as SPDX writes it: older manifests have `/` for `OR`.
fn expression(package: &Package) -> String {
    let license = package.license.as_deref().unwrap_or("NOASSERTION");
    license.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// The licences and notices beside a crate's manifest.
fn texts(package: &Package) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory(package)?)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if LICENCE_FILES.iter().any(|start| name.starts_with(start)) && path.is_file() {
            found.push(String::from_utf8_lossy(&fs::read(&path)?).into_owned());
        }
    }
    Ok(found)
}

fn directory(package: &Package) -> Result<&Path> {
    package.manifest_path.parent().context("a manifest is in a directory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::root;
    use crate::package::cargo::host_triple;

    #[test]
    fn the_bill_names_what_the_program_contains_and_nothing_else() {
        let triple = host_triple().expect("a host");
        let components = Components::of_program(&root(), &triple).expect("components");
        let bill: Value = serde_json::from_str(&components.bill().expect("a bill")).expect("JSON");
        let names: BTreeSet<&str> = bill["components"]
            .as_array()
            .expect("components")
            .iter()
            .map(|component| component["name"].as_str().expect("a name"))
            .collect();
        for name in ["rustls", "tokio", "aws-lc-sys", "jemalloc", "musl", "rust-std"] {
            assert!(names.contains(name), "{name}");
        }
        // Crates of tests, of the build, of an optional feature, of this repository.
        for name in ["kube", "cc", "ring", "pintle-server"] {
            assert!(!names.contains(name), "{name}");
        }
        let texts = components.licence_texts().expect("texts");
        for holder in ["Jason Evans", "Rich Felker", "The Rust Project", "OpenSSL"] {
            assert!(texts.contains(holder), "{holder}");
        }
    }
}
