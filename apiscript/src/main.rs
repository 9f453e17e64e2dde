//! `apiscript`: runs API scripts against any server that a kubeconfig leads to.

use std::io::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use apiscript::fuzz::{self, Campaign};
use apiscript::{Script, Target, differ, projects, replicas, run_scripts, script, siege, sweep};
use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
struct Program {
    #[command(subcommand)]
    command: Option<Deed>,
    #[command(flatten)]
    run: Options,
}

#[derive(Subcommand)]
enum Deed {
    /// Asks two servers the same, or one what was recorded of the other.
    Differ(Differ),
    /// Sends hostile requests; never to a server that anybody needs.
    Fuzz(Fuzz),
    /// Besieges a server with hostile connections; never one that anybody needs.
    Siege(Siege),
    /// Writes and reads by several servers of one database, and looks whether all tell one history.
    Replicas(Replicas),
    /// Creates other projects' definitions and objects, and broken copies of these.
    Projects(Projects),
    /// Sends requests in which everything that can be large is; never to a server that anybody needs.
    Sweep(Sweep),
}

#[derive(Args)]
struct Differ {
    /// The server in question; else what `$KUBECONFIG` names.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The server that is right; without it, its recorded verdicts are compared.
    #[arg(long)]
    reference: Option<PathBuf>,
    /// The folder with kinds, scenarios, known differences and verdicts.
    #[arg(long, default_value = "apiscript/differ")]
    folder: PathBuf,
    /// Only scenarios with this text in their names.
    #[arg(long)]
    only: Vec<String>,
    /// What the random questions follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs one scenario in so many of those that are made by rule.
    #[arg(long, default_value_t = 1)]
    one_in: usize,
    /// How many scenarios run at once.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Keeps the verdicts that the servers agree on.
    #[arg(long, requires = "reference")]
    record: bool,
    /// What both servers can do, where scripts require it: `cbor`.
    #[arg(long, value_delimiter = ',')]
    with: Vec<String>,
    /// Prints every difference as a line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Sweep {
    /// Where the server is and who we are; else what `$KUBECONFIG` names.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// How large requests are, in bytes.
    #[arg(long, default_value_t = 3_000_000)]
    bytes: usize,
    /// The most processor time that a request may cost, in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    processor: u64,
    /// The longest that `/livez` may take meanwhile, in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    livez: u64,
    /// Fills each field of a type wherever the type is used.
    #[arg(long)]
    everywhere: bool,
    /// Fills one place in so many.
    #[arg(long, default_value_t = 1)]
    one_in: usize,
    /// Prints every answer.
    #[arg(long)]
    verbose: bool,
    /// Only what has one of these words in its name: `Pod spec.containers`.
    only: Vec<String>,
}

#[derive(Args)]
struct Projects {
    /// Where the server is and who we are; else what `$KUBECONFIG` names.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Which projects, and what is where in their repositories.
    #[arg(long, default_value = "apiscript/projects.yaml")]
    list: PathBuf,
    /// The folder that has a checkout of each, named as the repository.
    checkouts: PathBuf,
    /// Only repositories with one of these words in their names.
    only: Vec<String>,
}

#[derive(Args)]
struct Fuzz {
    /// Where the server is and who we are; else what `$KUBECONFIG` names.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// What the requests follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first request.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many requests.
    #[arg(long, default_value_t = 10_000)]
    requests: u64,
    /// How many are sent at once.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
}

#[derive(Args)]
struct Replicas {
    /// Where a server is and who we are; once for each server.
    #[arg(long, required = true)]
    kubeconfig: Vec<PathBuf>,
    /// What the requests follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many clients there are.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// How many requests each client sends.
    #[arg(long, default_value_t = 500)]
    requests: usize,
    /// Requests may fail, for servers or the database are broken on purpose meanwhile.
    #[arg(long)]
    may_fail: bool,
}

#[derive(Args)]
struct Siege {
    /// Where the server is and who we are, who may do everything; else what `$KUBECONFIG` names.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// How many connections a row has, where it says nothing else.
    #[arg(long, default_value_t = 200)]
    connections: usize,
    /// How many seconds each row lasts before the next comes.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How many seconds the server has at the end for closing what only costs.
    #[arg(long, default_value_t = 150)]
    patience: u64,
    /// The address that the hostile peers come from: `127.0.0.2` keeps them apart from the ordinary user
    /// on one machine.
    #[arg(long)]
    from: Option<IpAddr>,
    /// Within how many milliseconds every answer must come …
    #[arg(long, default_value_t = 5_000)]
    slowest: u64,
    /// … and nine of ten.
    #[arg(long, default_value_t = 500)]
    usual: u64,
    /// How many megabytes more than before the server may have afterwards.
    #[arg(long, default_value_t = 100)]
    memory: u64,
    /// Only rows with one of these words in their names.
    only: Vec<String>,
}

#[derive(Args)]
struct Options {
    /// Where the server is and who we are; else what `$KUBECONFIG` names.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The server, instead of the kubeconfig's.
    #[arg(long)]
    server: Option<String>,
    /// How many scripts run at once.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Runs only scripts with this requirement id, or with this text in their name or file.
    #[arg(long)]
    only: Vec<String>,
    /// What the server can do, where scripts require it: `namespace-lifecycle` and others.
    #[arg(long, value_delimiter = ',')]
    with: Vec<String>,
    /// A shell command that makes the server forget its history.
    #[arg(long)]
    compact: Option<String>,
    /// Prints each id of docs/requirements.md with the number of scripts that check it, and runs nothing.
    #[arg(long)]
    coverage: bool,
    /// Files of scripts, or folders of them.
    #[arg(default_value = "scripts")]
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let program = Program::parse();
    let result = match program.command {
        Some(Deed::Differ(options)) => run_differ(options),
        Some(Deed::Fuzz(options)) => run_fuzz(&options),
        Some(Deed::Siege(options)) => run_siege(options),
        Some(Deed::Replicas(options)) => run_replicas(&options),
        Some(Deed::Projects(options)) => run_projects(&options),
        Some(Deed::Sweep(options)) => run_sweep(options),
        None => run(&program.run),
    };
    result.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "apiscript: {error:#}"); // nowhere else to say it
        ExitCode::FAILURE
    })
}

fn run_differ(options: Differ) -> Result<ExitCode> {
    let able = |target: Target| options.with.iter().fold(target, |target, able| target.able(able));
    let target = able(Target::from_kubeconfig(&kubeconfig(&options.kubeconfig)?)?);
    let reference = options.reference.as_deref().map(Target::from_kubeconfig).transpose()?;
    let reference = reference.map(able);
    let campaign = differ::Campaign {
        folder: options.folder,
        only: options.only,
        seed: options.seed,
        one_in: options.one_in,
        jobs: options.jobs,
        record: options.record,
    };
    let as_json = options.json;
    let show = |finding: &differ::Finding| {
        let text = if as_json { finding.to_json() } else { finding.to_string() };
        let _ = writeln!(std::io::stdout(), "{text}"); // a closed pipe is no reason to stop
    };
    let summary = differ::run(&target, reference.as_ref(), &campaign, &show)?;
    writeln!(std::io::stderr(), "{summary}")?;
    Ok(if summary.different() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_fuzz(options: &Fuzz) -> Result<ExitCode> {
    let target = Target::from_kubeconfig(&kubeconfig(&options.kubeconfig)?)?;
    let Fuzz { seed, first, requests, jobs, .. } = *options;
    let summary = fuzz::run(&target, &Campaign { seed, first, requests, jobs })?;
    writeln!(std::io::stdout(), "{summary}")?;
    Ok(ExitCode::SUCCESS)
}

fn run_replicas(options: &Replicas) -> Result<ExitCode> {
    let servers: Result<Vec<_>> =
        options.kubeconfig.iter().map(|path| Target::from_kubeconfig(path)).collect();
    let Replicas { seed, clients, requests, may_fail, .. } = *options;
    let campaign = replicas::Campaign { seed, clients, requests, may_fail };
    let summary = replicas::run(&servers?, &campaign)?;
    writeln!(std::io::stdout(), "{summary}")?;
    Ok(if summary.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_siege(options: Siege) -> Result<ExitCode> {
    let target = Target::from_kubeconfig(&kubeconfig(&options.kubeconfig)?)?;
    let campaign = siege::Campaign {
        connections: options.connections,
        seconds: options.seconds,
        patience: Duration::from_secs(options.patience),
        from: options.from,
        slowest: Duration::from_millis(options.slowest),
        usual: Duration::from_millis(options.usual),
        memory_more_bytes: options.memory * 1_000_000,
        only: options.only,
    };
    let summary = siege::run(&target, &campaign)?;
    writeln!(std::io::stdout(), "{summary}")?;
    Ok(if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_sweep(options: Sweep) -> Result<ExitCode> {
    let target = Target::from_kubeconfig(&kubeconfig(&options.kubeconfig)?)?;
    let campaign = sweep::Campaign {
        body_bytes: options.bytes,
        processor_max: Duration::from_millis(options.processor),
        livez_max: Duration::from_millis(options.livez),
        everywhere: options.everywhere,
        one_in: options.one_in,
        only: options.only,
    };
    let summary = sweep::run(&target, &campaign, &mut |name, status, processor| {
        if options.verbose {
            // A closed pipe is no reason to stop.
            let _ = writeln!(std::io::stdout(), "{:6} ms  {status}  {name}", processor.as_millis());
        }
    })?;
    writeln!(std::io::stdout(), "{summary}")?;
    Ok(if summary.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_projects(options: &Projects) -> Result<ExitCode> {
    let target = Target::from_kubeconfig(&kubeconfig(&options.kubeconfig)?)?;
    let mut out = std::io::stdout().lock();
    let mut all_good = true;
    writeln!(out, "| project | established | samples accepted | broken copies refused |")?;
    writeln!(out, "|---|---|---|---|")?;
    for project in projects::load(&options.list)? {
        let wanted = |word: &String| project.repository.contains(word.as_str());
        if !options.only.is_empty() && !options.only.iter().any(wanted) {
            continue;
        }
        let outcome = projects::run(&project, &options.checkouts, &target)?;
        writeln!(out, "{outcome}")?;
        for remark in &outcome.remarks {
            writeln!(std::io::stderr(), "{}: {remark}", project.repository)?;
        }
        all_good &= outcome.is_good();
    }
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(options: &Options) -> Result<ExitCode> {
    let mut scripts = Vec::new();
    for file in &options.files {
        scripts.extend(script::load(file)?);
    }
    scripts.retain(|script| is_wanted(script, &options.only));
    let mut out = std::io::stdout().lock();
    if options.coverage {
        for (id, count) in coverage(&scripts) {
            writeln!(out, "{count:4} {id}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let target = target(options)?;
    let report = run_scripts(&scripts, &target, options.jobs, |case| {
        let _ = writeln!(out, "{case}"); // a closed pipe is no reason to stop
    });
    writeln!(out, "{report}")?;
    Ok(if report.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn target(options: &Options) -> Result<Target> {
    let mut target = Target::from_kubeconfig(&kubeconfig(&options.kubeconfig)?)?;
    if let Some(server) = &options.server {
        target = target.at(server);
    }
    for ability in &options.with {
        target = target.able(ability);
    }
    if let Some(command) = options.compact.clone() {
        target = target.compacted_by(move || {
            let status = Command::new("sh").arg("-c").arg(&command).status()?;
            if !status.success() {
                bail!("{command}: {status}");
            }
            Ok(())
        });
    }
    Ok(target)
}

fn kubeconfig(given: &Option<PathBuf>) -> Result<PathBuf> {
    let from_environment = std::env::var_os("KUBECONFIG").map(PathBuf::from);
    given.clone().or(from_environment).context("--kubeconfig is missing")
}

fn is_wanted(script: &Script, only: &[String]) -> bool {
    let file = script.file.to_string_lossy();
    only.is_empty()
        || only.iter().any(|word| {
            script.script.contains(word.as_str())
                || file.contains(word.as_str())
                || script.all_ids().contains(&word.as_str())
        })
}

/// What the ids mean that scripts cite.
const REQUIREMENTS: &str = include_str!("../../docs/requirements.md");

/// How many scripts check each requirement.
fn coverage(scripts: &[Script]) -> std::collections::BTreeMap<&str, usize> {
    let rows = REQUIREMENTS.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let ids = rows.map(|(id, _)| id).filter(|id| id.contains('-'));
    let mut counts: std::collections::BTreeMap<_, _> = ids.map(|id| (id, 0)).collect();
    for script in scripts {
        let mut ids = script.all_ids();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            *counts.entry(id).or_default() += 1;
        }
    }
    counts
}
