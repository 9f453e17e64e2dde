//! The server's own work: controllers and compaction, on a thread of their own.
//!
//! Controllers go through whatever users have stored, which may be much: on the threads that serve
//! connections each long look would keep clients waiting. One thread is enough for them, and they share it as
//! tasks do.

use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::Error;

/// How long tasks may take to end that are told to.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// The thread, and what runs on it. Dropping it stops everything at once.
pub(super) struct Background {
    runtime: Handle,
    tasks: JoinSet<()>,
    /// Tasks that end by themselves when the server stops, and have something to do then.
    closing: JoinSet<()>,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl Background {
    /// Starts the thread.
    pub(super) fn start() -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Thread)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        thread::Builder::new()
            .name("controllers".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(stopped); // the sender says nothing: it is dropped
            })
            .map_err(Error::Thread)?;
        Ok(Self { runtime: handle, tasks: JoinSet::new(), closing: JoinSet::new(), _stop: stop })
    }

    /// Runs a task on the thread.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(task, &self.runtime);
    }

    /// Runs a task on the thread that ends by itself when the server stops: it is waited for.
    pub(super) fn spawn_closing(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.closing.spawn_on(task, &self.runtime);
    }

    /// Stops the tasks, and returns when they have stopped.
    pub(super) async fn shutdown(&mut self) {
        let closed = async { while self.closing.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSING_MAX, closed).await.is_err() {
            tracing::warn!("what is to be done at the end takes too long, and is cut off");
        }
        self.closing.shutdown().await;
        self.tasks.shutdown().await;
    }
}
