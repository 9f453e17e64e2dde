//! Every script against Pintle in this process, each a case of its own in the output, on servers
//! with several configurations.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, bail};
use apiscript::http::Request;
use apiscript::kubeconfig::Cluster;
use apiscript::{Case, Report, Script, Target, run_scripts, script};
use pintle_testing::{
    AdmissionConfiguration, Config, FeatureGates, Mode, Plugins, RuntimeConfig, TestServer,
};
use pintle_value::yaml;

/// How long a compaction may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// A configuration of a server, and its abilities: scripts that require one of them run against it.
struct Kind {
    abilities: &'static [&'static str],
    config: fn() -> Result<Config>,
    /// The number of scripts that run at once.
    jobs: usize,
    /// Its history is short, so that it can be compacted.
    forgets: bool,
}

/// A script runs against the first configuration with a required ability, else against the last.
const KINDS: [Kind; 6] = [
    Kind {
        abilities: &["compaction"],
        config: || Ok(Config { watch_history: Duration::from_millis(1), ..Config::ephemeral() }),
        jobs: 1,
        forgets: true,
    },
    Kind {
        abilities: &["cbor", "console"],
        config: || {
            let feature_gates = FeatureGates::parse(["CBORServingAndStorage=true"])?;
            Ok(Config { feature_gates, console: true, ..Config::ephemeral() })
        },
        jobs: 4,
        forgets: false,
    },
    Kind {
        abilities: &["dual-stack", "betas"],
        config: || {
            let features = "ClusterTrustBundle=true,GenericWorkload=true,\
                            PodCertificateRequest=true,StorageVersionMigrator=true";
            Ok(Config {
                service_cluster_ip_range: "10.96.0.0/24,fd00:96::/112".to_owned(),
                feature_gates: FeatureGates::parse([features])?,
                runtime_config: RuntimeConfig::parse(["api/all=true"])?,
                ..Config::ephemeral()
            })
        },
        jobs: 4,
        forgets: false,
    },
    Kind {
        abilities: &["strict-admission", "bootstrap-tokens", "nodes"],
        config: || {
            let file = yaml::parse(include_bytes!("admission.yaml"))?;
            let none = |name: &str| Err(format!("{name} is not to be read"));
            let (configuration, _) =
                AdmissionConfiguration::read(&file, &none).map_err(Error::msg)?;
            let admission_plugins = Plugins::parse(STRICT, [])?.configured(configuration)?;
            Ok(Config {
                admission_plugins,
                authorization_modes: vec![Mode::Node, Mode::Rbac],
                bootstrap_tokens: true,
                ..Config::ephemeral()
            })
        },
        jobs: 4,
        forgets: false,
    },
    Kind {
        abilities: &["removed-versions"],
        config: || {
            let runtime_config = RuntimeConfig::parse(["api/legacy=true"])?;
            Ok(Config { runtime_config, ..Config::ephemeral() })
        },
        jobs: 4,
        forgets: false,
    },
    Kind { abilities: &[], config: || Ok(Config::ephemeral()), jobs: 4, forgets: false },
];

/// The plugins of a server with `strict-admission`, in addition to the default ones.
const STRICT: [&str; 7] = [
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "NodeRestriction",
    "AlwaysPullImages",
    "PodNodeSelector",
    "OwnerReferencesPermissionEnforcement",
    "DenyServiceExternalIPs",
];

/// Runs the scripts that the command line names, or all; `further` changes the servers'
/// configuration.
pub(crate) fn run(further: impl Fn(Config) -> Result<Config>) -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").canonicalize()?;
    let mut scripts = script::load(&folder)?;
    for script in &mut scripts {
        script.file = script.file.strip_prefix(&folder)?.to_owned();
    }
    scripts.retain(|script| words.is_empty() || words.iter().any(|word| has(script, word)));
    let mut report = Report::default();
    for kind in &KINDS {
        let theirs = |script: &mut Script| {
            kind.abilities.is_empty()
                || script.requires.iter().any(|ability| kind.abilities.contains(&&**ability))
        };
        let theirs: Vec<Script> = scripts.extract_if(.., theirs).collect();
        let server = TestServer::start_with(further((kind.config)()?)?)?;
        let plain = target(&server)?;
        let mut able =
            kind.abilities.iter().fold(plain.clone(), |able, ability| able.able(ability));
        if kind.forgets {
            able = able.compacted_by(move || forget(&plain));
        }
        report.cases.extend(run_scripts(&theirs, &able, kind.jobs, say).cases);
    }
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
        "controller-manager",
        "advertised",
        "endless-grace",
        "events-keep-managers",
        "scales-take-configurations",
        "unsupported-protobuf",
        "whole-entries",
    ];
    Ok(abilities.iter().fold(Target::new(cluster)?, |target, ability| target.able(ability)))
}

/// Writes until a server with a short history has compacted its first version.
fn forget(target: &Target) -> Result<()> {
    let mut connection = target.connect(false)?;
    let deadline = Instant::now() + TIMEOUT;
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
