//! The program without shared libraries, with the same bytes from every checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Sources;

/// Builds the program for the architecture, with further flags of rustc.
pub(super) fn build(sources: &Sources, flags: &str) -> Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or(sources.root.join("target"), PathBuf::from);
    let built = compile(sources, flags, &target)?;
    let program = sources.out.join(format!("pintle-{}", sources.architecture.name));
    fs::copy(built, &program)?;
    Ok(program)
}

/// Compiles the program with further flags of rustc; returns its path in the target directory. With
/// a profile, all crates are optimised for speed, because the compiler then makes only that code
/// large which runs often.
pub(super) fn compile(sources: &Sources, flags: &str, target: &Path) -> Result<PathBuf> {
    let architecture = sources.architecture;
    let triple = architecture.triple;
    let variable = |name: &str| format!("{name}_{}", triple.replace('-', "_"));
    // Paths of the machine get into messages of panics (rustc) and of failed checks (C): the paths
    // of this checkout and of the registry are replaced. rustc itself replaces those of the
    // standard library.
    let root = sources.root.display();
    let registry = cargo_home()?;
    let registry = registry.display();
    let rust =
        format!("--remap-path-prefix={root}=/pintle --remap-path-prefix={registry}=/cargo{flags}");
    let c = format!("-ffile-prefix-map={root}=/pintle -ffile-prefix-map={registry}=/cargo");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "-p", "pintle", "--target", triple])
        .args(sources.also.iter().flat_map(|name| ["-p", name]))
        .current_dir(&sources.root)
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_TARGET_DIR", target)
        .envs((!flags.is_empty()).then_some(("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")))
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
    Ok(target.join(triple).join("release/pintle"))
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
