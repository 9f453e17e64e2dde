//! Large requests against Pintle in this process: small samples of the sweep, with sizes at which
//! quadratic work is unmistakable.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use apiscript::Target;
use apiscript::kubeconfig::Cluster;
use apiscript::sweep::{self, Campaign};
use pintle_testing::TestServer;

/// The most processor time of a request (other programs do not count). A debug build needs a tenth
/// of it, and a quadratic algorithm many times as much.
const PROCESSOR_MAX: Duration = Duration::from_secs(5);
/// How long other requests may wait, in wall-clock time.
const LIVEZ_MAX: Duration = Duration::from_secs(60);

#[test]
fn requests_that_once_stalled_the_server_are_fast() -> Result<()> {
    let only = [
        "v1 ConfigMap metadata.ownerReferences",
        "v1 Endpoints subsets[].addresses",
        "v1 Namespace metadata.finalizers",
        "v1 ResourceQuota spec.scopes",
        "v1 Pod spec.topologySpreadConstraints",
        "matchFields",
        "resizePolicy",
        "v1 Role rules",
        "v1 ClusterRole rules",
        "ValidatingAdmissionPolicy spec.variables",
        "JSON patch: move",
        "JSON patch: remove first",
        "JSON patch: move in a deep document",
        "strategic merge patch: empty order",
        "product: ",
    ];
    check(Campaign { only: only.map(str::to_owned).to_vec(), ..campaign(150_000, 1) })
}

#[test]
fn a_sample_of_all_large_fields_is_processed_in_time() -> Result<()> {
    check(campaign(40_000, 25))
}

fn campaign(body_bytes: usize, one_in: usize) -> Campaign {
    Campaign {
        body_bytes,
        processor_max: PROCESSOR_MAX,
        livez_max: LIVEZ_MAX,
        everywhere: false,
        one_in,
        only: Vec::new(),
    }
}

fn check(campaign: Campaign) -> Result<()> {
    let server = TestServer::start();
    let target = Target::new(Cluster::from_text(server.kubeconfig(), Path::new("."))?)?;
    let summary = sweep::run(&target, &campaign, &mut |_, _, _| ())?;
    writeln!(std::io::stdout(), "{summary}")?;
    ensure!(summary.requests > 50, "only {} requests were sent", summary.requests);
    ensure!(summary.failures.is_empty(), "{} requests cost too much", summary.failures.len());
    Ok(())
}
