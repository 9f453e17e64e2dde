//! A few rounds of the crash campaign. For many: `pintle-bench crash --server-binary PATH --rounds 100`.
//!
//! The test belongs to this package, because a package's tests run the program that was built with
//! them. To build it from another package would compile everything anew, with other features.

use anyhow::Result;
use pintle_bench::crash::{self, Campaign};

#[test]
fn acknowledged_writes_survive_kills() -> Result<()> {
    let binary = env!("CARGO_BIN_EXE_pintle").into();
    let campaign = Campaign { binary, rounds: 4, clients: 64, watchers: 3, seed: 1 };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let summary = runtime.block_on(crash::run(&campaign, |line| println!("{line}")))?;
    println!("{summary}");
    Ok(())
}
