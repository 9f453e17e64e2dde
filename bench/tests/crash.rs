//! A few rounds of the crash campaign. For many: `pintle-bench crash --server-binary PATH --rounds 100`.

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

/// The binary, built with the profile of this test.
fn server_binary() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder =
        test.parent().and_then(Path::parent).context("tests are in target/PROFILE/deps")?;
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "pintle"]);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    let target = folder.parent().context("a profile is in target")?;
    let status = build.env("CARGO_TARGET_DIR", target).status()?;
    ensure!(status.success(), "building the server: {status}");
    Ok(folder.join("pintle"))
}
