//! The front end for upstream's own published files: a checkout of kubernetes/kubernetes, or a
//! directory with checkouts of its published modules, and `swagger.json` and `discovery/` beside
//! them.

mod discovery;
mod go;
mod proto;
mod swagger;

pub(crate) use swagger::read as read_swagger;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::sources::{Package, Sources};

/// The modules that hold API types.
const MODULES: &[&str] = &["api", "apimachinery", "apiextensions-apiserver", "kube-aggregator"];

/// The paths of a release's files.
struct Layout {
    modules: PathBuf,
    swagger: PathBuf,
    discovery: PathBuf,
}

impl Layout {
    fn of(dir: &Path) -> Self {
        let staging = dir.join("staging/src/k8s.io");
        if staging.exists() {
            let swagger = dir.join("api/openapi-spec/swagger.json");
            Self { modules: staging, swagger, discovery: dir.join("api/discovery") }
        } else {
            let (swagger, discovery) = (dir.join("swagger.json"), dir.join("discovery"));
            Self { modules: dir.to_path_buf(), swagger, discovery }
        }
    }
}

/// Reads a release's files under `dir`.
pub(crate) fn read(dir: &Path) -> Result<Sources> {
    let layout = Layout::of(dir);
    let mut sources = read_modules(dir)?;
    read_swagger(&layout.swagger, &mut sources)?;
    discovery::read(&layout.discovery, &mut sources)?;
    Ok(sources)
}

/// Reads the Go and Protobuf files alone.
pub(crate) fn read_modules(dir: &Path) -> Result<Sources> {
    let layout = Layout::of(dir);
    let mut sources = Sources::default();
    for module in MODULES {
        read_folder(&layout.modules.join(module), &format!("k8s.io/{module}"), &mut sources)?;
    }
    Ok(sources)
}

/// Reads a folder and those below it. Only versioned packages (`core/v1`) and `pkg/version` have
/// API types.
fn read_folder(folder: &Path, import: &str, sources: &mut Sources) -> Result<()> {
    let mut package = Package::default();
    for path in entries(folder)? {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        if path.is_dir() {
            if !matches!(
                name,
                "client" | "examples" | "test" | "testapigroup" | "testdata" | "testing"
            ) {
                read_folder(&path, &format!("{import}/{name}"), sources)?;
            }
        } else if name == "generated.proto" {
            proto::read(&text(&path)?, &mut sources.messages);
        } else if is_package_of_types(import) && is_source_of_types(name) {
            go::read(&text(&path)?, &mut package);
        }
    }
    go::finish(&mut package);
    if package != Package::default() {
        sources.packages.insert(import.to_owned(), package);
    }
    Ok(())
}

fn is_package_of_types(import: &str) -> bool {
    let last = import.rsplit('/').next().unwrap_or("");
    let version =
        last.strip_prefix('v').is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()));
    version || import.ends_with("pkg/version")
}

fn is_source_of_types(file: &str) -> bool {
    file.ends_with(".go") && !file.ends_with("_test.go") && !file.contains("generated")
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = read.map(|e| Ok(e?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
