//! Every script against Pintle on a real etcd, or on kine (see `pintle_testing::etcd`).
//!
//! `cargo test -p apiscript --test scripts_on_etcd -- WORD…` runs those whose file, sentence or ids
//! have one of the words.

mod servers;

use std::process::ExitCode;
use std::time::Duration;

use pintle_testing::etcd::Database;
use pintle_testing::{Config, Etcd};

fn main() -> anyhow::Result<ExitCode> {
    let Some(database) = Database::find()? else { return Ok(ExitCode::SUCCESS) };
    servers::run(|config: Config| {
        // Each server begins empty, and those with a short history compact soon.
        let forgets = config.watch_history < Duration::from_secs(1);
        let compaction_interval = forgets.then_some(Duration::from_millis(100));
        let etcd = Etcd { compaction_interval, ..database.part() };
        Ok(Config { etcd: Some(etcd), ..config })
    })
}
