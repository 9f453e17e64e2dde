//! The program: flags to a configuration, a server from it, and its end on a signal; and what can be
//! done without a server.

mod convert;
mod flags;
mod log;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use pintle_server::{Config, Running, Server};
use tokio::signal::unix::{Signal, SignalKind, signal};

use flags::{Command, Pintle};

fn main() -> ExitCode {
    let done = match Pintle::parse().command {
        Command::Serve(flags) => {
            log::start(flags.verbosity());
            flags.config().and_then(run)
        }
        Command::Convert(convert) => convert.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The log may be switched off or elsewhere; why the program ends is always said.
            let _ = writeln!(std::io::stderr(), "pintle: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until a signal comes.
fn run(config: Config) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        let server = tokio::select! {
            server = Server::start(config) => server?,
            () = signals.next() => return Ok(()),
        };
        announce(&server)?;
        signals.next().await;
        tracing::info!("stopping; a second signal stops at once");
        tokio::select! {
            () = server.shutdown() => tracing::info!("stopped"),
            () = signals.next() => anyhow::bail!("stopped before all requests were finished"),
        }
        Ok(())
    })
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

    /// Returns when one comes. Cancel safe.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
