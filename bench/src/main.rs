//! `pintle-bench`: figures of an API server, and the crash campaign.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Parser, Subcommand};
use pintle_bench::cases::{
    Extent, Namespace, definitions, encodings, lists, pauses, starts, tokens, watches, writes,
};
use pintle_bench::crash::{self, Campaign};
use pintle_bench::objects;
use pintle_bench::process::{Program, Running};
use pintle_bench::report::Report;
use pintle_bench::server::Server;

/// Everything that can be measured; `--only` takes these.
const CASES: [&str; 14] = [
    "start",
    "restart",
    "create",
    "get",
    "update",
    "patch",
    "delete",
    "watch",
    "nodes",
    "list",
    "encodings",
    "definitions",
    "tokens",
    "pauses",
];

#[derive(Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Deed>,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Subcommand)]
enum Deed {
    /// Kills a server in a storm of writes, again and again, and checks what it kept.
    Crash(Crash),
}

#[derive(Args)]
struct Measure {
    /// Where the server is and who we are; read after each start.
    #[arg(long, value_name = "FILE", default_value = "admin.kubeconfig")]
    kubeconfig: PathBuf,
    /// A shell command that runs the server in the foreground; without one it runs already.
    #[arg(long, value_name = "COMMAND")]
    start: Option<String>,
    /// A shell command that stops it; without one it gets SIGTERM.
    #[arg(long, value_name = "COMMAND")]
    stop: Option<String>,
    /// What to measure: start, restart, create, get, update, patch, delete, watch, list, encodings,
    /// definitions, tokens; and if they are named, nodes: watches of one node's pods each, and pauses: the
    /// longest time without an answer, while you break something.
    #[arg(long, value_name = "CASE,…", value_delimiter = ',')]
    only: Vec<String>,
    /// How long each measurement takes.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// How many clients read and write at once.
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "1,16,64")]
    clients: Vec<usize>,
    /// How many pods are listed.
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "1000,10000")]
    list_sizes: Vec<usize>,
    /// How many watchers there are.
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "1,100,1000")]
    watchers: Vec<usize>,
    /// Another server of the same database, which the watchers ask.
    #[arg(long, value_name = "FILE")]
    watch_kubeconfig: Option<PathBuf>,
    /// How many objects there are at a restart.
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    objects: usize,
    /// CustomResourceDefinitions in YAML, of which many are made under other names.
    #[arg(long = "definition", value_name = "FILE")]
    models: Vec<PathBuf>,
    /// How many are made.
    #[arg(long, value_name = "COUNT", default_value_t = 2_000)]
    definitions: usize,
    /// A pod to measure with, in YAML, instead of our own.
    #[arg(long, value_name = "FILE")]
    pod: Option<PathBuf>,
    /// Put a ResourceQuota into the namespaces in which single objects are written.
    #[arg(long)]
    quota: bool,
    /// Bearer tokens, one a line, which the clients of the case tokens present in turn: each request
    /// its own, without a client certificate.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Send single requests over HTTP/2.
    #[arg(long)]
    http2: bool,
    /// How many threads the generator has.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    threads: usize,
    /// What the run is about, for the report: which server, durable or not.
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// Also writes the figures here, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct Crash {
    /// The server's binary; it is run as `BINARY serve --data-dir … --secure-port 0`.
    #[arg(long, value_name = "FILE")]
    server_binary: PathBuf,
    /// How often it is killed.
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// How many write at once.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// How many watch all the time.
    #[arg(long, default_value_t = 4)]
    watchers: usize,
    /// What the moments of the kills and the choice of the writes follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    run(Options::parse()).unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "pintle-bench: {error:#}"); // nowhere else to say it
        ExitCode::FAILURE
    })
}

fn run(options: Options) -> Result<ExitCode> {
    let threads = if options.command.is_some() { 2 } else { options.measure.threads };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        match options.command {
            Some(Deed::Crash(crash)) => run_crash(crash).await,
            None => run_measure(options.measure).await,
        }
    })
}

async fn run_crash(options: Crash) -> Result<ExitCode> {
    let campaign = Campaign {
        binary: options.server_binary,
        rounds: options.rounds,
        clients: options.clients,
        watchers: options.watchers,
        seed: options.seed,
    };
    let mut out = std::io::stdout();
    let summary = crash::run(&campaign, |line| {
        let _ = writeln!(out, "{line}"); // a closed pipe is no reason to stop
    })
    .await?;
    writeln!(std::io::stdout(), "{summary}")?;
    Ok(ExitCode::SUCCESS)
}

async fn run_measure(options: Measure) -> Result<ExitCode> {
    for case in &options.only {
        ensure!(CASES.contains(&case.as_str()), "{case:?} is none of {}", CASES.join(", "));
    }
    let mut report = Report { label: options.label.clone(), ..Report::default() };
    let failed = measure(&options, &mut report).await;
    write!(std::io::stdout(), "{report}")?;
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    failed?; // what was measured before has been said
    Ok(ExitCode::SUCCESS)
}

async fn measure(options: &Measure, report: &mut Report) -> Result<()> {
    let wanted = |case: &str| options.only.is_empty() || options.only.iter().any(|c| c == case);
    let extent = Extent {
        time: Duration::from_secs(options.seconds),
        clients: options.clients.clone(),
        list_sizes: options.list_sizes.clone(),
        watchers: options.watchers.clone(),
        objects: options.objects,
        http2: options.http2,
    };
    let program = options.start.as_ref().map(|start| Program {
        start: start.clone(),
        stop: options.stop.clone(),
        kubeconfig: options.kubeconfig.clone(),
    });
    if let Some(program) = program.as_ref().filter(|_| wanted("start")) {
        starts::measure_start(program, report).await?;
    }
    // Before anything else is written, for memory and restart are about these objects alone.
    if let Some(program) = program.as_ref().filter(|_| wanted("restart")) {
        starts::measure_restart(program, &objects::config_map(), &extent, report).await?;
    }
    let running = match &program {
        Some(program) => Some(program.start().await?),
        None => None,
    };
    let server = Server::from_kubeconfig(&options.kubeconfig).context("--kubeconfig")?;
    measure_requests(&server, running.as_ref(), options, &extent, &wanted, report).await?;
    if wanted("encodings") {
        let sample = objects::pod(options.pod.as_deref())?;
        encodings::measure(&server, running.as_ref(), &sample, &extent, report).await?;
    }
    if let Some(running) = running {
        running.stop().await?;
    }
    if let Some(program) = program.as_ref().filter(|_| wanted("definitions")) {
        // Last, for they stay.
        match options.models.as_slice() {
            [] => report.note("definitions: there is no --definition"),
            models => {
                definitions::measure(program, models, options.definitions, report).await?;
            }
        }
    }
    if program.is_none() {
        report.note("start, memory and restart: there is no --start");
    }
    Ok(())
}

async fn measure_requests(
    server: &Server,
    running: Option<&Running>,
    options: &Measure,
    extent: &Extent,
    wanted: &dyn Fn(&str) -> bool,
    report: &mut Report,
) -> Result<()> {
    let unique = std::process::id();
    let samples = [objects::config_map(), objects::pod(options.pod.as_deref())?];
    if writes::OPERATIONS.iter().any(|operation| wanted(operation)) {
        for sample in &samples {
            let name = format!("bench-{unique}-{}", sample.resource);
            let namespace = Namespace::create(server, &name).await?;
            if options.quota {
                namespace.add_quota().await?;
            }
            let result = writes::measure(&namespace, running, sample, extent, wanted, report).await;
            namespace.delete().await?;
            result?;
        }
    }
    if wanted("watch") {
        let mut namespace = Namespace::create(server, &format!("bench-{unique}-watch")).await?;
        if let Some(other) = &options.watch_kubeconfig {
            namespace.watched = Server::from_kubeconfig(other).context("--watch-kubeconfig")?;
        }
        let result = watches::measure(&namespace, running, &samples[0], extent, report).await;
        namespace.delete().await?;
        result?;
    }
    // Only if it is named: it is meant for thousands of watchers.
    if options.only.iter().any(|case| case == "nodes") {
        let namespace = Namespace::create(server, &format!("bench-{unique}-nodes")).await?;
        let result = watches::of_nodes(&namespace, running, &samples[1], extent, report).await;
        namespace.delete().await?;
        result?;
    }
    // Only if it is named: it tells nothing where nothing is broken.
    if options.only.iter().any(|case| case == "pauses") {
        let namespace = Namespace::create(server, &format!("bench-{unique}-pauses")).await?;
        let result = pauses::measure(&namespace, extent, report).await;
        namespace.delete().await?;
        result?;
    }
    match &options.tokens {
        Some(tokens) if wanted("tokens") => {
            tokens::measure(server, running, tokens, extent, report).await?;
        }
        _ if options.only.iter().any(|case| case == "tokens") => {
            report.note("tokens: there is no --tokens");
        }
        _ => {}
    }
    if wanted("list") {
        let namespace = Namespace::create(server, &format!("bench-{unique}-list")).await?;
        let result = lists::measure(&namespace, &samples[1], extent, report).await;
        namespace.delete().await?;
        result?;
    }
    Ok(())
}
