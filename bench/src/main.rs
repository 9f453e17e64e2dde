//! `pintle-bench` measures an API server and runs the crash campaign.

mod options;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use pintle_bench::cases::{
    Extent, Namespace, cluster, definitions, encodings, idle, lists, paths, pauses, starts,
    tenants, tokens, watches, writes,
};
use pintle_bench::compare;
use pintle_bench::crash::{self, Campaign};
use pintle_bench::instructions;
use pintle_bench::objects;
use pintle_bench::process::{Program, Running};
use pintle_bench::report::Report;
use pintle_bench::server::Server;

use options::{Alternate, Crash, Instructions, Measure, OneServer, Options, Task};

/// All measurements; `--only` selects some.
const CASES: [&str; 18] = [
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
    "paths",
    "pauses",
    "idle",
    "tenants",
    "cluster",
];

fn main() -> ExitCode {
    run(Options::parse()).unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "pintle-bench: {error:#}"); // no other output is left
        ExitCode::FAILURE
    })
}

fn run(options: Options) -> Result<ExitCode> {
    let threads = match &options.command {
        Some(Task::Alternate(alternate)) => alternate.measure.threads,
        Some(_) => 2,
        None => options.measure.threads,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        match options.command {
            Some(Task::Crash(crash)) => run_crash(crash).await?,
            Some(Task::Alternate(alternate)) => run_alternate(*alternate).await?,
            Some(Task::Compare(files)) => compare_files(&files.reports)?,
            Some(Task::Instructions(options)) => return run_instructions(&options).await,
            None => {
                run_measure(&options.server, &options.measure).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Measures the servers in turn, so that slow minutes of the machine concern all of them.
async fn run_alternate(options: Alternate) -> Result<()> {
    std::fs::create_dir_all(&options.reports)?;
    let mut files = Vec::new();
    for round in 1..=options.rounds {
        for (number, side) in (1..).zip(options.sides.chunks_exact(3)) {
            let [label, kubeconfig, start] = side else { continue };
            let file = options.reports.join(format!("{round}-{number}.json"));
            let server = OneServer {
                kubeconfig: kubeconfig.into(),
                start: Some(start.clone()),
                stop: None,
                label: label.clone(),
                json: Some(file.clone()),
            };
            run_measure(&server, &options.measure).await?;
            files.push(file);
        }
    }
    compare_files(&files)
}

/// Counts instructions; the program fails if some sequence takes noticeably more than recorded,
/// unless the counts are recorded now.
async fn run_instructions(options: &Instructions) -> Result<ExitCode> {
    let recorded = match std::fs::read(&options.recorded) {
        Ok(text) => serde_json::from_slice(&text).context("--recorded")?,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => instructions::Counts::new(),
        Err(why) => return Err(why).context("--recorded"),
    };
    let profiles = options.profiles.as_deref();
    profiles.map(std::fs::create_dir_all).transpose()?;
    let counted =
        instructions::measure(&options.server_binary, options.pod.as_deref(), profiles).await?;
    let changes = instructions::Changes { recorded: &recorded, counted: &counted };
    write!(std::io::stdout(), "{changes}")?;
    if options.record {
        std::fs::write(&options.recorded, serde_json::to_string_pretty(&counted)? + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if changes.has_regressions() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn compare_files(files: &[PathBuf]) -> Result<()> {
    let read = |file: &PathBuf| -> Result<Report> {
        let text = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{}", file.display()))
    };
    let reports: Vec<Report> = files.iter().map(read).collect::<Result<_>>()?;
    write!(std::io::stdout(), "{}", compare::Comparison::of(&reports))?;
    Ok(())
}

async fn run_crash(options: Crash) -> Result<()> {
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
    Ok(())
}

async fn run_measure(server: &OneServer, options: &Measure) -> Result<()> {
    for case in &options.only {
        ensure!(CASES.contains(&case.as_str()), "{case:?} is none of {}", CASES.join(", "));
    }
    let mut report = Report { label: server.label.clone(), ..Report::default() };
    let failed = measure(server, options, &mut report).await;
    write!(std::io::stdout(), "{report}")?;
    if let Some(path) = &server.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    failed // the report has the figures of the measurements before
}

async fn measure(target: &OneServer, options: &Measure, report: &mut Report) -> Result<()> {
    let wanted = |case: &str| options.only.is_empty() || options.only.iter().any(|c| c == case);
    let extent = Extent {
        time: Duration::from_secs(options.seconds),
        clients: options.clients.clone(),
        list_sizes: options.list_sizes.clone(),
        watchers: options.watchers.clone(),
        objects: options.objects,
        http2: options.http2,
    };
    let program = target.start.as_ref().map(|start| Program {
        start: start.clone(),
        stop: target.stop.clone(),
        kubeconfig: target.kubeconfig.clone(),
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
    let server = Server::from_kubeconfig(&target.kubeconfig).context("--kubeconfig")?;
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
            let owned = match sample.resource {
                "pods" => sample.owned(&namespace.create_owner().await?)?,
                _ => sample.clone(),
            };
            let result = writes::measure(&namespace, running, &owned, extent, wanted, report).await;
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
    measure_named(server, running, options, extent, report).await?;
    if options.only.iter().any(|case| case == "paths") {
        paths::measure(server, running, &options.paths, extent, report).await?;
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

/// The measurements that run only if they are named: they take long, or need a failure.
async fn measure_named(
    server: &Server,
    running: Option<&Running>,
    options: &Measure,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let pod = objects::pod(options.pod.as_deref())?;
    for case in ["nodes", "pauses", "idle", "tenants", "cluster"] {
        if !options.only.iter().any(|only| only == case) {
            continue;
        }
        let name = format!("bench-{}-{case}", std::process::id());
        let namespace = Namespace::create(server, &name).await?;
        let result = match case {
            "nodes" => watches::measure_nodes(&namespace, running, &pod, extent, report).await,
            "pauses" => pauses::measure(&namespace, extent, report).await,
            "idle" => idle::measure(&namespace, running, extent, report).await,
            "tenants" => tenants::measure(&namespace, running, &pod, extent, report).await,
            _ => cluster::measure(&namespace, running, &pod, extent, report).await,
        };
        namespace.delete().await?;
        result?;
    }
    Ok(())
}
