//! `pintle-bench` measures an API server and runs the crash campaign.

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

/// All measurements; `--only` selects some.
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
    command: Option<Task>,
    #[command(flatten)]
    measure: Measure,
}

#[derive(Subcommand)]
enum Task {
    /// Kills a server under load, again and again, and checks that nothing was lost
    Crash(Crash),
}

#[derive(Args)]
struct Measure {
    /// The kubeconfig of the server; read after each start
    #[arg(long, value_name = "FILE", default_value = "admin.kubeconfig")]
    kubeconfig: PathBuf,
    /// A shell command that runs the server in the foreground; without one the server must be
    /// running
    #[arg(long, value_name = "COMMAND")]
    start: Option<String>,
    /// A shell command that stops it; without one it gets SIGTERM
    #[arg(long, value_name = "COMMAND")]
    stop: Option<String>,
    /// The measurements: start, restart, create, get, update, patch, delete, watch, list,
    /// encodings, definitions, tokens. Only if named: nodes, watches of one node's pods each, and
    /// pauses, the longest time without a response, while you cause a failure
    #[arg(long, value_name = "CASE,…", value_delimiter = ',')]
    only: Vec<String>,
    /// The duration of each measurement
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The numbers of clients that read and write at once
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "1,16,64")]
    clients: Vec<usize>,
    /// The numbers of pods in lists
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "1000,10000")]
    list_sizes: Vec<usize>,
    /// The numbers of watchers
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "1,100,1000")]
    watchers: Vec<usize>,
    /// Another server of the same database, for the watchers
    #[arg(long, value_name = "FILE")]
    watch_kubeconfig: Option<PathBuf>,
    /// The number of objects at a restart
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    objects: usize,
    /// CustomResourceDefinitions in YAML that are copied under other names
    #[arg(long = "definition", value_name = "FILE")]
    models: Vec<PathBuf>,
    /// The number of copies
    #[arg(long, value_name = "COUNT", default_value_t = 2_000)]
    definitions: usize,
    /// A pod in YAML, instead of the default
    #[arg(long, value_name = "FILE")]
    pod: Option<PathBuf>,
    /// Create a ResourceQuota in the namespaces of single objects
    #[arg(long)]
    quota: bool,
    /// A file of bearer tokens, one a line, for the measurement tokens: each request has the next
    /// one, without a client certificate
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Send single requests over HTTP/2.
    #[arg(long)]
    http2: bool,
    /// The number of threads of the load generator
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    threads: usize,
    /// A label for the report: which server, durable or not
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// Also writes the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct Crash {
    /// The server's binary; it is run as `BINARY serve --data-dir … --secure-port 0`
    #[arg(long, value_name = "FILE")]
    server_binary: PathBuf,
    /// The number of kills
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// The number of writers
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// The number of watchers
    #[arg(long, default_value_t = 4)]
    watchers: usize,
    /// The seed of the times of the kills and the choice of the writes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    run(Options::parse()).unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "pintle-bench: {error:#}"); // no other output is left
        ExitCode::FAILURE
    })
}

fn run(options: Options) -> Result<ExitCode> {
    let threads = if options.command.is_some() { 2 } else { options.measure.threads };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        match options.command {
            Some(Task::Crash(crash)) => run_crash(crash).await,
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
        let _ = writeln!(out, "{line}"); // a closed pipe does not stop the run
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
    failed?; // the report has the figures of the measurements before
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
    // First, because the memory and the restart are measured with these objects alone.
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
        // Last, because its definitions are not deleted.
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
        let result = watches::measure_nodes(&namespace, running, &samples[1], extent, report).await;
        namespace.delete().await?;
        result?;
    }
    // Only if it is named: it measures nothing without a failure.
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
