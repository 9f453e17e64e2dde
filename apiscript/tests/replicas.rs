//! Two servers of this process on a real etcd: all responses fit one history.

use std::path::Path;

use anyhow::{Result, ensure};
use apiscript::Target;
use apiscript::kubeconfig::Cluster;
use apiscript::replicas::{self, Campaign};
use pintle_testing::etcd::Database;
use pintle_testing::{Config, TestServer};

const CAMPAIGN: Campaign = Campaign { seed: 1, clients: 6, requests: 120, may_fail: false };

fn target(server: &TestServer) -> Result<Target> {
    Target::new(Cluster::from_text(server.kubeconfig(), Path::new("."))?)
}

fn check(servers: &[Target]) -> Result<()> {
    let summary = replicas::run(servers, &CAMPAIGN)?;
    ensure!(summary.wrong.is_empty(), "{summary}");
    ensure!(summary.changes > 200 && summary.refused > 50, "too little happened: {summary}");
    Ok(())
}

#[test]
fn servers_on_one_etcd_show_one_history() -> Result<()> {
    let Some(database) = Database::find()? else { return Ok(()) };
    let config = Config { etcd: Some(database.part()), ..Config::ephemeral() };
    let servers = [TestServer::start_with(config.clone())?, TestServer::start_with(config)?];
    let targets: Result<Vec<_>> = servers.iter().map(target).collect();
    check(&targets?)
}

#[test]
fn a_server_with_an_embedded_store_shows_one_history() -> Result<()> {
    let server = TestServer::start_with(Config::ephemeral())?;
    check(&[target(&server)?])
}
