//! The licences that crates of others may have, and where these may come from.

use std::path::Path;

use anyhow::Result;
use spdx::{Expression, ParseMode};

use super::cargo::{Metadata, Package, host_triple};

/// Licences that crates may have, as SPDX names them. All of them ask at most that their text and
/// the author's name go with the program; MPL-2.0 also asks that changes of its own files are
/// published.
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

/// The only registry that crates of others may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Returns the offences of the crates of others that are built on this machine, also for tests.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let packages = Metadata::read(root, &host_triple()?)?.packages;
    Ok(packages.iter().filter(|package| package.source.is_some()).filter_map(offence).collect())
}

fn offence(package: &Package) -> Option<String> {
    let Package { name, version, license, source, .. } = package;
    if source.as_deref() != Some(REGISTRY) {
        return Some(format!("{name} {version}: does not come from crates.io"));
    }
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn package(license: Option<&str>, source: &str) -> Package {
        Package {
            id: String::new(),
            name: "crate".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            repository: None,
            source: Some(source.to_owned()),
            manifest_path: PathBuf::new(),
        }
    }

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
            let package = package(license, REGISTRY);
            assert_eq!(offence(&package).is_none(), is_allowed, "{license:?}");
        }
    }

    #[test]
    fn crates_of_other_registries_are_offences() {
        let package = package(Some("MIT"), "git+https://example.org/crate");
        assert_eq!(offence(&package).as_deref(), Some("crate 1.0.0: does not come from crates.io"));
    }
}
