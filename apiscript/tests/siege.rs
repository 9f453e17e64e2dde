//! A small siege of Pintle in this process.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use apiscript::Target;
use apiscript::kubeconfig::Cluster;
use apiscript::siege::{self, Campaign};
use pintle_testing::{Config, ConnectionLimits, TestServer};

/// If loopback has more than one address, hostile clients have their own.
const FROM: Option<IpAddr> =
    if cfg!(target_os = "linux") { Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2))) } else { None };

#[test]
fn an_ordinary_user_does_not_notice_a_siege() -> Result<()> {
    // Small limits, so that they are reached soon, but large enough that an ordinary user does not
    // reach them on a busy machine.
    let connections = ConnectionLimits {
        connections_max: 400,
        handshake: Duration::from_secs(10),
        unauthenticated_idle: Duration::from_secs(10),
        idle: Duration::from_secs(15),
        leave: Duration::from_secs(5),
        write_stall: Duration::from_secs(10),
        ..ConnectionLimits::default()
    };
    let server = TestServer::start_with(Config { connections, ..Config::ephemeral() })?;
    let target = Target::new(Cluster::from_text(server.kubeconfig(), Path::new("."))?)?;
    let campaign = Campaign {
        connections: 40,
        seconds: 1.0,
        // A stalled write, an idle time, the GOAWAY; and a check every few seconds.
        patience: Duration::from_secs(40),
        from: FROM,
        // A connection that is not served waits for a minute; a busy machine is slow.
        slowest: Duration::from_secs(20),
        usual: Duration::from_secs(5),
        // Both sides of all rows are in this process, and the allocator keeps much of their memory.
        memory_more_bytes: 1 << 30,
        only: Vec::new(),
    };
    let summary = siege::run(&target, &campaign)?;
    println!("{summary}");
    ensure!(summary.is_good(), "an ordinary user noticed, or the server did not recover");
    Ok(())
}
