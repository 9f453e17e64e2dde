//! Every script against Pintle on a real etcd: `etcd` on the path, or what `PINTLE_ETCD` names.
//!
//! `cargo test -p apiscript --test scripts_on_etcd -- WORD…` runs those whose file, sentence or ids have
//! one of the words.

mod etcd;
mod servers;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pintle_testing::{Config, Etcd};

fn main() -> anyhow::Result<ExitCode> {
    let Some(process) = etcd::Process::start()? else { return Ok(ExitCode::SUCCESS) };
    let servers = AtomicUsize::new(0);
    servers::run(|config: Config| {
        // Each server begins with nothing, and those that are to forget soon do.
        let number = servers.fetch_add(1, Ordering::Relaxed);
        let forgets = config.watch_history < Duration::from_secs(1);
        let etcd = Etcd {
            endpoints: vec![process.url.clone()],
            prefix: format!("/registry-{number}"),
            compaction_interval: forgets.then_some(Duration::from_millis(100)),
            ..Etcd::default()
        };
        Ok(Config { etcd: Some(etcd), ..config })
    })
}
