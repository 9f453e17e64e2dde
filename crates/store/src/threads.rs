//! Threads of a store: its own, and those for work that waits for the disk.

use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::Error;

/// Starts a thread of the store.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, Error> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|e| Error::Failed { reason: format!("no thread for {name}: {e}") })
}

/// Runs work on a separate thread, so that it does not block the caller's thread.
pub(crate) async fn on_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (reply, answer) = oneshot::channel();
    spawn(name, move || drop(reply.send(work())))?;
    answer.await.unwrap_or_else(|_| Err(Error::Failed { reason: format!("{name} stopped") }))
}
