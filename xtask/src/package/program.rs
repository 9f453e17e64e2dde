//! The program without shared libraries, with the same bytes from every checkout.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Sources;

/// Builds the program for the architecture.
pub(super) fn build(sources: &Sources) -> Result<PathBuf> {
    let architecture = sources.architecture;
    let triple = architecture.triple;
    let variable = |name: &str| format!("{name}_{}", triple.replace('-', "_"));
    // Paths of the machine get into messages of panics (rustc) and of failed checks (C): the paths
    // of this checkout and of the registry are replaced. rustc itself replaces those of the
    // standard library.
    let root = sources.root.display();
    let registry = cargo_home()?;
    let registry = registry.display();
    let rust = format!("--remap-path-prefix={root}=/pintle --remap-path-prefix={registry}=/cargo");
    let c = format!("-ffile-prefix-map={root}=/pintle -ffile-prefix-map={registry}=/cargo");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "-p", "pintle", "--target", triple])
        .args(sources.also.iter().flat_map(|name| ["-p", name]))
        .current_dir(&sources.root)
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTFLAGS", rust)
        .env(variable("CC"), architecture.c_compiler)
        .env(variable("CFLAGS"), c)
        .env(
            format!("CARGO_TARGET_{}_LINKER", triple.replace('-', "_").to_uppercase()),
            architecture.linker,
        )
        .status()
        .context("cargo")?;
    ensure!(
        built.success(),
        "the program is not built; it needs `rustup target add {triple}` and Debian's {}",
        architecture.needs
    );
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or(sources.root.join("target"), PathBuf::from);
    let program = sources.out.join(format!("pintle-{}", architecture.name));
    fs::copy(target.join(triple).join("release/pintle"), &program)?;
    Ok(program)
}

/// Where cargo keeps the sources of other crates.
fn cargo_home() -> Result<PathBuf> {
    match std::env::var_os("CARGO_HOME") {
        Some(path) => Ok(path.into()),
        None => {
            let home = std::env::home_dir().context("CARGO_HOME and HOME are not set")?;
            Ok(home.join(".cargo"))
        }
    }
}
