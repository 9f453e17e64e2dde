//! The requests of `differ` to Pintle in this process, compared with the recorded verdicts of a
//! kube-apiserver.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};
use apiscript::Target;
use apiscript::differ::{self, Campaign};
use apiscript::kubeconfig::Cluster;
use pintle_testing::{Config, Selection, TestServer};

#[test]
fn responses_to_a_sample_equal_the_recorded_verdicts() -> Result<()> {
    // The recorded kube-apiserver had no controller manager.
    let controllers = Selection::parse([])?;
    let server = TestServer::start_with(Config { controllers, ..Config::ephemeral() })?;
    let target = Target::new(Cluster::from_text(server.kubeconfig(), Path::new("."))?)?;
    let campaign = Campaign {
        folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("differ"),
        only: Vec::new(),
        seed: 1,
        one_in: 16,
        jobs: 4,
        record: false,
    };
    let summary = differ::run(&target, None, &campaign, &|finding| {
        let _ = writeln!(std::io::stdout(), "{finding}"); // a closed pipe is no reason to stop
    })?;
    ensure!(summary.questions > 1_000, "only {} questions were asked", summary.questions);
    ensure!(summary.compared > 1_000, "only {} answers were compared", summary.compared);
    ensure!(summary.different() == 0, "{summary}");
    Ok(())
}
