//! Requests to stop the server: signals, and with `--stop-at-eof` the end of standard input.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// The requests to stop the server.
pub(crate) struct Stops {
    terminate: Signal,
    interrupt: Signal,
    /// Pending until standard input ends; `None` if its end does not stop the server, or after its
    /// end.
    end_of_input: Option<oneshot::Receiver<()>>,
}

impl Stops {
    /// The requests by signals and, if `at_eof`, by the end of standard input.
    pub(crate) fn new(at_eof: bool) -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            end_of_input: if at_eof { Some(end_of_input()?) } else { None },
        })
    }

    /// Returns on the next signal that does not repeat the first request. A tool that stops a
    /// process group may signal both the process and the group (`timeout` does), within
    /// microseconds, so such a pair counts once; two presses of Ctrl-C are further apart. The end
    /// of the input is no second request: it follows when a signal also stops the program that
    /// holds the other end. Cancel safe.
    pub(crate) async fn another(&mut self) {
        const SAME: Duration = Duration::from_millis(20);
        let first = Instant::now();
        loop {
            self.signal().await;
            if first.elapsed() > SAME {
                return;
            }
        }
    }

    /// Returns on the next signal. Cancel safe.
    async fn signal(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Returns on the next request. Cancel safe.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = ended(&mut self.end_of_input) => self.end_of_input = None,
        }
    }
}

/// Returns when the input has ended; never returns for `None`.
async fn ended(input: &mut Option<oneshot::Receiver<()>>) {
    match input {
        Some(input) => _ = input.await,
        None => std::future::pending().await,
    }
}

/// Reads standard input to its end, on a thread outside the runtime: a runtime that is dropped
/// waits for the reads that it started.
fn end_of_input() -> std::io::Result<oneshot::Receiver<()>> {
    let (ended, input) = oneshot::channel();
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = ended.send(());
    })?;
    Ok(input)
}
