//! A few thousand hostile requests against Pintle in this process.

use std::path::Path;

use anyhow::{Result, ensure};
use apiscript::Target;
use apiscript::fuzz::{self, Campaign};
use apiscript::kubeconfig::Cluster;
use pintle_testing::TestServer;

/// How much the process, client and server together, may grow.
const GROWTH_BYTES: u64 = 400 << 20;

#[test]
fn hostile_requests_get_valid_responses() -> Result<()> {
    let server = TestServer::start();
    let target = Target::new(Cluster::from_text(server.kubeconfig(), Path::new("."))?)?;
    let before = memory_bytes();
    let summary = fuzz::run(&target, &Campaign { seed: 1, first: 0, requests: 4_000, jobs: 4 })?;
    println!("{summary}");
    let grown = memory_bytes().saturating_sub(before);
    ensure!(grown < GROWTH_BYTES, "the process has grown by {grown} bytes");
    Ok(())
}

/// Resident memory of this process; 0 where there is no /proc.
fn memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib: u64 = line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    kib * 1024
}
