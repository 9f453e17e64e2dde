//! Every script against Pintle in this process, each a case of its own in the output.
//!
//! `cargo test -p apiscript --test scripts -- WORD…` runs those whose file, sentence or ids have one of
//! the words.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use apiscript::http::Request;
use apiscript::kubeconfig::Cluster;
use apiscript::{Case, Report, Script, Target, run_scripts, script};
use pintle_testing::{Config, Plugins, RuntimeConfig, TestServer};

/// How long a server may take to forget.
const PATIENCE: Duration = Duration::from_secs(120);
/// What a server can do that has addresses of both families, and all versions.
const WIDE: [&str; 2] = ["dual-stack", "betas"];
/// The plugins of a server with `strict-admission`.
const STRICT: [&str; 7] = [
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "NodeRestriction",
    "AlwaysPullImages",
    "PodNodeSelector",
    "OwnerReferencesPermissionEnforcement",
    "DenyServiceExternalIPs",
];

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").canonicalize()?;
    let mut scripts = script::load(&folder)?;
    for script in &mut scripts {
        script.file = script.file.strip_prefix(&folder)?.to_owned();
    }
    scripts.retain(|script| words.is_empty() || words.iter().any(|word| has(script, word)));
    let needs = |ability: &'static str| move |s: &Script| s.requires.iter().any(|a| a == ability);
    let (forgetting, others): (Vec<_>, Vec<_>) = scripts.into_iter().partition(needs("compaction"));
    let (in_cbor, others): (Vec<_>, Vec<_>) = others.into_iter().partition(needs("cbor"));
    let (in_strictness, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(needs("strict-admission"));
    let is_wide = |s: &Script| WIDE.iter().any(|ability| needs(ability)(s));
    let (in_width, keeping): (Vec<_>, Vec<_>) = others.into_iter().partition(is_wide);

    let server = TestServer::start();
    let mut report = run_scripts(&keeping, &target(&server)?, 4, say);
    let short = Config { watch_history: Duration::from_millis(1), ..Config::ephemeral() };
    let server = TestServer::start_with(short)?;
    let target = target(&server)?;
    let forgetful = target.clone().compacted_by(move || forget(&target));
    report.cases.extend(run_scripts(&forgetting, &forgetful, 1, say).cases);
    let mut speaking = Config::ephemeral();
    speaking.feature_gates.cbor_serving_and_storage = true;
    let server = TestServer::start_with(speaking)?;
    let target = self::target(&server)?.able("cbor");
    report.cases.extend(run_scripts(&in_cbor, &target, 4, say).cases);
    let wide = Config {
        service_cluster_ip_range: "10.96.0.0/24,fd00:96::/112".to_owned(),
        runtime_config: RuntimeConfig::parse(["api/all=true"])?,
        ..Config::ephemeral()
    };
    let server = TestServer::start_with(wide)?;
    let target = WIDE.iter().fold(self::target(&server)?, |target, ability| target.able(ability));
    report.cases.extend(run_scripts(&in_width, &target, 4, say).cases);
    let strict = Config { admission_plugins: Plugins::parse(STRICT, [])?, ..Config::ephemeral() };
    let server = TestServer::start_with(strict)?;
    let target = self::target(&server)?.able("strict-admission");
    report.cases.extend(run_scripts(&in_strictness, &target, 4, say).cases);
    finish(&report)
}

fn target(server: &TestServer) -> Result<Target> {
    let cluster = Cluster::from_text(server.kubeconfig(), Path::new("."))?;
    let abilities = [
        "namespace-lifecycle",
        "garbage-collection",
        "service-accounts",
        "resource-quota",
        "policy-status",
        "empty-dry-run",
        "empty-managed-fields",
        "protobuf",
    ];
    Ok(abilities.iter().fold(Target::new(cluster)?, |target, ability| target.able(ability)))
}

/// Writes until a server that remembers but a moment has forgotten its first version.
fn forget(target: &Target) -> Result<()> {
    let mut connection = target.connect(false)?;
    let deadline = Instant::now() + PATIENCE;
    for number in 0.. {
        let object =
            format!("{{\"metadata\":{{\"name\":\"forget\",\"labels\":{{\"n\":\"{number}\"}}}}}}");
        let namespace = Request {
            method: if number == 0 { "POST" } else { "PUT" }.to_owned(),
            target: format!("/api/v1/namespaces{}", if number == 0 { "" } else { "/forget" }),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: Some(object.into_bytes()),
        };
        connection.exchange(&namespace)?;
        let old = "/api/v1/secrets?resourceVersion=1&resourceVersionMatch=Exact";
        let list =
            Request { method: "GET".to_owned(), target: old.to_owned(), ..Request::default() };
        if connection.exchange(&list)?.head.status == 410 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("version 1 is still remembered");
        }
    }
    Ok(())
}

fn has(script: &Script, word: &str) -> bool {
    script.script.contains(word)
        || script.file.to_string_lossy().contains(word)
        || script.all_ids().contains(&word)
}

fn say(case: &Case) {
    let _ = writeln!(std::io::stdout(), "{case}"); // a closed pipe is no reason to stop
}

fn finish(report: &Report) -> Result<ExitCode> {
    writeln!(std::io::stdout(), "{report}").context("standard output")?;
    Ok(if report.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
