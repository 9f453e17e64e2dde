//! A few rounds of the crash campaign. For many:
//! `pintle-bench crash --server-binary PATH --rounds 100`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pintle_bench::crash::{self, Campaign};

#[test]
fn acknowledged_writes_survive_kills() -> Result<()> {
    let campaign =
        Campaign { binary: server_binary()?, rounds: 4, clients: 64, watchers: 3, seed: 1 };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let summary = runtime.block_on(crash::run(&campaign, |line| println!("{line}")))?;
    println!("{summary}");
    Ok(())
}

/// The program, built with the profile of this test. `cargo test --workspace` has built it before; a
/// build of its package alone would compile everything anew, because the features differ.
fn server_binary() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder =
        test.parent().and_then(Path::parent).context("tests are in target/PROFILE/deps")?;
    let program = folder.join("pintle");
    if is_current(&program).unwrap_or_default() {
        return Ok(program);
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "pintle"]);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    let target = folder.parent().context("a profile is in target")?;
    let status = build.env("CARGO_TARGET_DIR", target).status()?;
    ensure!(status.success(), "building the server: {status}");
    Ok(program)
}

/// Whether a program is newer than all of its sources, which cargo lists beside it.
fn is_current(program: &Path) -> Result<bool> {
    let built = program.metadata()?.modified()?;
    let listed = fs::read_to_string(program.with_extension("d"))?;
    let (_, sources) = listed.trim_end().split_once(": ").context("cargo lists sources")?;
    for source in sources.split(' ') {
        if fs::metadata(source)?.modified()? > built {
            return Ok(false);
        }
    }
    Ok(true)
}
