//! `apiscript`: runs API scripts against any server that a kubeconfig names.

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
    command: Option<Task>,
    #[command(flatten)]
    run: Options,
}

#[derive(Subcommand)]
enum Task {
    /// Sends the same requests to two servers, or compares one server with recorded responses
    Differ(Differ),
    /// Sends hostile requests; never use it on a server that is in use
    Fuzz(Fuzz),
    /// Attacks a server with hostile connections; never use it on a server that is in use
    Siege(Siege),
    /// Writes and reads on several servers of one database, and checks that all report one history
    Replicas(Replicas),
    /// Creates other projects' definitions and objects, and broken copies of these.
    Projects(Projects),
    /// Sends requests in which everything is as large as possible; never use it on a server that is
    /// in use
    Sweep(Sweep),
}

#[derive(Args)]
struct Differ {
    /// The kubeconfig of the server to test [default: $KUBECONFIG]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig of the reference server; without it, recorded verdicts are compared
    #[arg(long)]
    reference: Option<PathBuf>,
    /// The folder with kinds, scenarios, known differences and verdicts.
    #[arg(long, default_value = "apiscript/differ")]
    folder: PathBuf,
    /// Only scenarios with this text in their names.
    #[arg(long)]
    only: Vec<String>,
    /// The seed of random requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs one in so many of the generated scenarios
    #[arg(long, default_value_t = 1)]
    one_in: usize,
    /// The number of scenarios that run at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Records the verdicts on which the servers agree
    #[arg(long, requires = "reference")]
    record: bool,
    /// Abilities of both servers that scripts require: `cbor`
    #[arg(long, value_delimiter = ',')]
    with: Vec<String>,
    /// Prints every difference as a line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Sweep {
    /// The kubeconfig of the server [default: $KUBECONFIG]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The size of requests, in bytes
    #[arg(long, default_value_t = 3_000_000)]
    bytes: usize,
    /// The most processor time that a request may cost, in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    processor: u64,
    /// The longest that `/livez` may take meanwhile, in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    livez: u64,
    /// Fills each field of a type wherever the type is used
    #[arg(long)]
    everywhere: bool,
    /// Fills one field in so many
    #[arg(long, default_value_t = 1)]
    one_in: usize,
    /// Prints every response
    #[arg(long)]
    verbose: bool,
    /// Only requests with one of these words in their name: `Pod spec.containers`
    only: Vec<String>,
}

#[derive(Args)]
struct Projects {
    /// The kubeconfig of the server [default: $KUBECONFIG]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The list of projects, with the paths in their repositories
    #[arg(long, default_value = "apiscript/projects.yaml")]
    list: PathBuf,
    /// The folder with a checkout of each, named like the repository
    checkouts: PathBuf,
    /// Only repositories with one of these words in their names.
    only: Vec<String>,
}

#[derive(Args)]
struct Fuzz {
    /// The kubeconfig of the server [default: $KUBECONFIG]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The seed of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first request.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The number of requests
    #[arg(long, default_value_t = 10_000)]
    requests: u64,
    /// The number of requests in flight
    #[arg(long, default_value_t = 4)]
    jobs: usize,
}

#[derive(Args)]
struct Replicas {
    /// The kubeconfig of a server; once for each server
    #[arg(long, required = true)]
    kubeconfig: Vec<PathBuf>,
    /// The seed of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of clients
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// The number of requests of each client
    #[arg(long, default_value_t = 500)]
    requests: usize,
    /// Requests may fail, because servers or the database are broken on purpose
    #[arg(long)]
    may_fail: bool,
}

#[derive(Args)]
struct Siege {
    /// The kubeconfig of the server, whose user must be allowed everything [default: $KUBECONFIG]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The number of connections of a row, unless the row says otherwise
    #[arg(long, default_value_t = 200)]
    connections: usize,
    /// How many seconds each row lasts
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How many seconds the server has at the end to close hostile connections
    #[arg(long, default_value_t = 150)]
    patience: u64,
    /// The source address of hostile clients: `127.0.0.2` separates them from the ordinary user on
    /// one machine
    #[arg(long)]
    from: Option<IpAddr>,
    /// Within how many milliseconds every response must arrive
    #[arg(long, default_value_t = 5_000)]
    slowest: u64,
    /// Within how many milliseconds nine of ten responses must arrive
    #[arg(long, default_value_t = 500)]
    usual: u64,
    /// How many megabytes of memory the server may have in addition afterwards
    #[arg(long, default_value_t = 100)]
    memory: u64,
    /// Only rows with one of these words in their names.
    only: Vec<String>,
}

#[derive(Args)]
struct Options {
    /// The kubeconfig of the server [default: $KUBECONFIG]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The server's URL, instead of the kubeconfig's
    #[arg(long)]
    server: Option<String>,
    /// The number of scripts that run at once
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Runs only scripts with this requirement id, or with this text in their name or file.
    #[arg(long)]
    only: Vec<String>,
    /// Abilities of the server that scripts require: `namespace-lifecycle` and others
    #[arg(long, value_delimiter = ',')]
    with: Vec<String>,
    /// A shell command that makes the server compact its history
    #[arg(long)]
    compact: Option<String>,
    /// Prints each id of docs/requirements.md with the number of scripts that cite it, and runs
    /// nothing
    #[arg(long)]
    coverage: bool,
    /// Files of scripts, or folders of them.
    #[arg(default_value = "scripts")]
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let program = Program::parse();
    let result = match program.command {
        Some(Task::Differ(options)) => run_differ(options),
        Some(Task::Fuzz(options)) => run_fuzz(&options),
        Some(Task::Siege(options)) => run_siege(options),
        Some(Task::Replicas(options)) => run_replicas(&options),
        Some(Task::Projects(options)) => run_projects(&options),
        Some(Task::Sweep(options)) => run_sweep(options),
        None => run(&program.run),
    };
    result.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "apiscript: {error:#}"); // there is no other channel for the error
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
            // A closed pipe does not stop the campaign.
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

/// The requirements, with the ids that scripts cite.
const REQUIREMENTS: &str = include_str!("../../docs/requirements.md");

/// The number of scripts that cite each requirement.
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
