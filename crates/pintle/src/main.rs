//! The program: parses flags, and runs either a server, until a signal, or another command.

mod certificates;
mod command_line;
mod compat;
mod convert;
mod doctor;
mod etcd_access;
mod flags;
mod kubeconfig;
mod log;
mod manual;
mod service_manager;
mod snapshot;
mod stop;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory as _;
use pintle_musl as _; // replaces functions of musl
use pintle_server::{Config, Running, Server};

use command_line::{Command, CommandLine, FlagValues, Pintle};
use compat::Program;
use flags::LogOptions;
use stop::Stops;
use tikv_jemallocator::Jemalloc;

/// glibc's allocator keeps the memory of a burst of large responses; jemalloc returns it to the
/// system, and writes of pods take a quarter less CPU time. `.cargo/config.toml` configures it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The time after readiness in which a server finishes its start: bootstrap objects, controllers'
/// first syncs.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    hide_reported_panics();
    let mut arguments = std::env::args_os();
    let done = match arguments.next().and_then(|program| Program::of(&program)) {
        None => Pintle::read(std::env::args_os()).map_err(exit_for_usage).and_then(run_command),
        Some(program) => {
            run_as(program, arguments.map(|argument| argument.to_string_lossy().into_owned()))
        }
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // The reason of a failure is printed even if the log is off.
            let _ = writeln!(std::io::stderr(), "pintle: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Suppresses the report of a panic that the store catches and returns as an error about its
/// damaged database.
fn hide_reported_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !pintle_server::is_guarded() {
            report(panic);
        }
    }));
}

/// Prints an error of the command line and exits; returns any other error.
fn exit_for_usage(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<clap::Error>() {
        Ok(usage) => usage.exit(),
        Err(error) => error,
    }
}

/// Runs a command line. An error about a flag of the `--config` file names its line.
fn run_command(
    CommandLine { command, flag_values, file }: CommandLine,
) -> anyhow::Result<ExitCode> {
    execute(command, flag_values).map_err(|error| match &file {
        Some(file) => file.locate(error),
        None => error,
    })
}

fn execute(command: Command, flag_values: FlagValues) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(flags) => {
            log::start(flags.log());
            let stop_at_eof = flags.stop_at_eof();
            run(Config { flags: flag_values, ..flags.config()? }, stop_at_eof)?;
        }
        Command::Certificates(certificates) => certificates.run()?,
        Command::Convert(convert) => return convert.run(),
        Command::Snapshot(snapshot) => snapshot.run()?,
        Command::Completion(completion) => completion.run(Pintle::command())?,
        Command::Doctor(doctor) => return doctor.run(),
        Command::Manual(manual) => manual.run(Pintle::command())?,
        Command::Kubeconfig(kubeconfig) => kubeconfig.run()?,
        Command::EnvtestAssets { directory } => {
            let assets = compat::assets::lay_out(&directory)?;
            writeln!(
                std::io::stdout(),
                "export KUBEBUILDER_ASSETS={}",
                compat::assets::quoted(&assets)
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs as the program by whose name Pintle was called.
fn run_as(program: Program, arguments: impl Iterator<Item = String>) -> anyhow::Result<ExitCode> {
    match program {
        Program::KubeApiserver => run_as_kube_apiserver(&compat::arguments::flags(arguments)),
        Program::Etcd => run_as_etcd(&compat::arguments::flags(arguments)),
        Program::KubectlConvert => {
            let words = ["pintle", "convert"].map(str::to_owned).into_iter().chain(arguments);
            match Pintle::read(words).map_err(exit_for_usage)?.command {
                Command::Convert(convert) => convert.for_kubectl().run(),
                _ => unreachable!("the first word is `convert`"),
            }
        }
    }
}

fn run_as_kube_apiserver(flags: &[compat::arguments::Flag]) -> anyhow::Result<ExitCode> {
    if let Some(words) = compat::kube_apiserver::words(flags) {
        write!(std::io::stdout(), "{words}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let translation = runtime.block_on(compat::kube_apiserver::translate(flags))?;
    for warning in &translation.warnings {
        writeln!(std::io::stderr(), "kube-apiserver: {warning}")?;
    }
    let start = ["kube-apiserver".to_owned(), "serve".to_owned()];
    run_command(Pintle::read(start.into_iter().chain(translation.arguments))?)
}

fn run_as_etcd(flags: &[compat::arguments::Flag]) -> anyhow::Result<ExitCode> {
    if let Some(words) = compat::etcd::words(flags) {
        write!(std::io::stdout(), "{words}")?;
        return Ok(ExitCode::SUCCESS);
    }
    log::start(LogOptions::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut stops = Stops::new(false)?;
        tokio::select! {
            ended = compat::etcd::run(flags) => ended,
            () = stops.next() => Ok(()),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a server until a signal or, if `stop_at_eof`, until the end of standard input.
fn run(config: Config, stop_at_eof: bool) -> anyhow::Result<()> {
    let runtime = pintle_server::runtime()?;
    runtime.block_on(async {
        let mut stops = Stops::new(stop_at_eof)?;
        let server = tokio::select! {
            server = Server::start(config) => server?,
            () = stops.next() => return Ok(()),
        };
        announce(&server)?;
        service_manager::ready(server.url());
        tokio::spawn(service_manager::report_life(server.liveness()));
        tokio::spawn(release_code());
        stops.next().await;
        service_manager::stopping();
        tracing::info!("stopping; a second signal stops at once");
        tokio::select! {
            () = server.shutdown() => tracing::info!("stopped"),
            () = stops.another() => anyhow::bail!("stopped before all requests were finished"),
        }
        Ok(())
    })
}

/// Returns the pages of code that only the start needed to the system, after the start has
/// finished.
async fn release_code() {
    tokio::time::sleep(SETTLED_AFTER).await;
    match pintle_pages::release() {
        Ok(bytes) => {
            tracing::debug!(bytes, "returned the pages of the program's code to the system")
        }
        Err(error) => {
            tracing::debug!(%error, "cannot return the pages of the program's code to the system")
        }
    }
}

/// Prints the line on standard output that people and programs wait for.
fn announce(server: &Running) -> std::io::Result<()> {
    let kubeconfig = server.kubeconfig_path().display();
    let mut out = std::io::stdout().lock();
    writeln!(out, "pintle ready url={} kubeconfig={kubeconfig}", server.url())?;
    out.flush()
}
