//! The program: flags to a configuration, a server from it, and its end on a signal; and what can be
//! done without a server.

mod certificates;
mod compat;
mod convert;
mod flags;
mod log;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pintle_server::{Config, Running, Server};
use tokio::signal::unix::{Signal, SignalKind, signal};

use compat::Program;
use flags::{Command, Pintle, Told};
use tikv_jemallocator::Jemalloc;

/// glibc's allocator keeps the memory that a burst of large answers took; jemalloc gives it back to the
/// system, and writes of pods take a quarter less processor time. `.cargo/config.toml` configures it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// How long after it is ready a server has done what follows a start: bootstrap objects, controllers' first
/// looks.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let done = match arguments.next().and_then(|program| Program::of(&program)) {
        None => obey(Pintle::read(std::env::args_os()).unwrap_or_else(|error| error.exit())),
        Some(program) => {
            run_as(program, arguments.map(|argument| argument.to_string_lossy().into_owned()))
        }
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // The log may be switched off or elsewhere; why the program ends is always said.
            let _ = writeln!(std::io::stderr(), "pintle: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the command line says.
fn obey((command_line, told): (Pintle, Told)) -> anyhow::Result<ExitCode> {
    match command_line.command {
        Command::Serve(flags) => {
            log::start(flags.verbosity());
            run(Config { flags: told, ..flags.config()? })?;
        }
        Command::Certificates(certificates) => certificates.run()?,
        Command::Convert(convert) => return convert.run(),
        Command::EnvtestAssets { directory } => {
            let assets = compat::assets::lay_out(&directory)?;
            writeln!(std::io::stdout(), "export KUBEBUILDER_ASSETS={}", assets.display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Does what a program of another name would do.
fn run_as(program: Program, arguments: impl Iterator<Item = String>) -> anyhow::Result<ExitCode> {
    let flags = compat::arguments::flags(arguments);
    let words = match program {
        Program::KubeApiserver => compat::kube_apiserver::words(&flags),
        Program::Etcd => compat::etcd::words(&flags),
    };
    if let Some(words) = words {
        write!(std::io::stdout(), "{words}")?;
        return Ok(ExitCode::SUCCESS);
    }
    match program {
        Program::KubeApiserver => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let translation = runtime.block_on(compat::kube_apiserver::translate(&flags))?;
            for warning in &translation.warnings {
                writeln!(std::io::stderr(), "kube-apiserver: {warning}")?;
            }
            let start = ["kube-apiserver".to_owned(), "serve".to_owned()];
            obey(Pintle::read(start.into_iter().chain(translation.arguments))?)
        }
        Program::Etcd => {
            log::start(0);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let mut signals = Signals::new()?;
                tokio::select! {
                    ended = compat::etcd::run(&flags) => ended,
                    () = signals.next() => Ok(()),
                }
            })?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Serves until a signal comes.
fn run(config: Config) -> anyhow::Result<()> {
    let runtime = pintle_server::runtime()?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        let server = tokio::select! {
            server = Server::start(config) => server?,
            () = signals.next() => return Ok(()),
        };
        announce(&server)?;
        tokio::spawn(release_code());
        signals.next().await;
        tracing::info!("stopping; a second signal stops at once");
        tokio::select! {
            () = server.shutdown() => tracing::info!("stopped"),
            () = signals.another() => anyhow::bail!("stopped before all requests were finished"),
        }
        Ok(())
    })
}

/// Gives code that only the start needed back to the system, when what follows a start has run, too.
async fn release_code() {
    tokio::time::sleep(SETTLED_AFTER).await;
    match pintle_pages::release() {
        Ok(bytes) => tracing::debug!(bytes, "the pages of the program's code are given back"),
        Err(error) => tracing::debug!(%error, "the pages of the program's code stay mapped"),
    }
}

/// The one line on standard output: for people, and for programs that wait for it.
fn announce(server: &Running) -> std::io::Result<()> {
    let kubeconfig = server.kubeconfig_path().display();
    let mut out = std::io::stdout().lock();
    writeln!(out, "pintle ready url={} kubeconfig={kubeconfig}", server.url())?;
    out.flush()
}

/// The signals that end the server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Returns when another one comes than the one just now. Who ends a group of processes may send it to each
    /// of them and to the group (`timeout` does): what follows at once is the same. Cancel safe.
    async fn another(&mut self) {
        const SAME: Duration = Duration::from_millis(500);
        let first = Instant::now();
        loop {
            self.next().await;
            if first.elapsed() > SAME {
                return;
            }
        }
    }

    /// Returns when one comes. Cancel safe.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
