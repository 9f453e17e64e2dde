//! The thread of controllers, compaction and other background tasks.
//!
//! Controllers walk through large collections; on the threads that serve connections, each long
//! poll would delay clients. One thread is enough for all of them, as asynchronous tasks.

use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::Error;
use crate::lifecycle::Panics;

/// The time that closing tasks have to end.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// The thread and its tasks. Dropping it aborts all tasks.
pub(super) struct Background {
    runtime: Handle,
    panics: Panics,
    tasks: JoinSet<()>,
    /// Tasks that end when the server stops, after some last work.
    closing: JoinSet<()>,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl Background {
    /// Starts the thread. `panics` notes the panics of tasks.
    pub(super) fn start(panics: Panics) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Thread)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        thread::Builder::new()
            .name("controllers".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(stopped); // nothing is sent: the sender is dropped
            })
            .map_err(Error::Thread)?;
        let (tasks, closing) = (JoinSet::new(), JoinSet::new());
        Ok(Self { runtime: handle, panics, tasks, closing, _stop: stop })
    }

    /// Spawns a task, which is aborted at the end.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(self.panics.clone().watch(task), &self.runtime);
    }

    /// Spawns a task that ends by itself when the server stops. [`Self::shutdown`] waits for it.
    pub(super) fn spawn_closing(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.closing.spawn_on(self.panics.clone().watch(task), &self.runtime);
    }

    /// Stops all tasks and waits for them.
    pub(super) async fn shutdown(&mut self) {
        let closed = async { while self.closing.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSING_MAX, closed).await.is_err() {
            tracing::warn!(
                "some tasks did not end within {CLOSING_MAX:?} of the shutdown and are cancelled"
            );
        }
        self.closing.shutdown().await;
        self.tasks.shutdown().await;
    }
}
