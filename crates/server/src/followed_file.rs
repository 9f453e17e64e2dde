//! A configuration file that the server reads periodically, to take its changes into use.
//!
//! Invariant: only content that is in use counts as known. Other content is tried again until it is
//! in use or replaced, unless it is invalid.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::{Instant, MissedTickBehavior};
use zeroize::Zeroizing;

use crate::machine::now;
use crate::reloads::Reloads;

/// How often a configuration file is read to see whether it changed.
const PERIOD: Duration = Duration::from_secs(1);
/// The pause after the first failure of a content. Each further failure doubles it.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause, as in upstream, which checks its files each minute.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The hash of a content. The content itself is not stored, because it may hold keys.
type Hash = [u8; 32];

/// The content of a configuration file. It is wiped from memory after use.
pub(crate) type Content = Zeroizing<Vec<u8>>;

/// A configuration file whose changes the server follows.
pub(crate) struct FollowedFile {
    path: PathBuf,
    /// The content at the start.
    first: Hash,
}

/// Why content was not taken into use.
pub(crate) enum Unusable {
    /// The content is invalid, and stays so.
    Invalid(String),
    /// Something that the content needs is absent or fails, which may end.
    NotReady(String),
}

/// An attempt that failed.
struct Failed {
    /// `None` if the file could not be read.
    content: Option<Hash>,
    why: String,
    pause: Duration,
    /// When the next attempt is due; `None` if the content is invalid.
    due: Option<Instant>,
}

impl FollowedFile {
    /// Follows the file at `path`, which had `content` when the server started.
    pub(crate) fn new(path: &Path, content: &[u8]) -> Self {
        Self { path: path.to_owned(), first: Sha256::digest(content).into() }
    }

    /// Takes each new content into use with `take`, and records the outcomes. Runs without end.
    pub(crate) async fn follow<T>(&self, reloads: &Reloads, take: impl Fn(Content) -> T)
    where
        T: Future<Output = Result<(), Unusable>>,
    {
        let mut current = Some(self.first);
        let mut failed = None::<Failed>;
        let mut interval = tokio::time::interval(PERIOD);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            let read = read(&self.path).await;
            let hash = read.as_ref().ok().map(|content| Sha256::digest(content).into());
            if hash == current {
                failed = None;
                continue;
            }
            let before = failed.take().filter(|failed| failed.content == hash);
            if before.as_ref().is_some_and(|before| !before.is_due()) {
                failed = before;
                continue;
            }
            let outcome = match read {
                Ok(content) => take(content).await,
                Err(why) => Err(Unusable::NotReady(why)),
            };
            match outcome {
                Ok(()) => {
                    current = hash;
                    reloads.succeeded(now().unix_seconds());
                }
                Err(refusal) => {
                    let attempt = Failed::new(hash, refusal, before.as_ref());
                    let is_known = before.is_some_and(|before| before.why == attempt.why);
                    reloads.failed(&attempt.why, is_known, now().unix_seconds());
                    failed = Some(attempt);
                }
            }
        }
    }
}

impl Failed {
    /// A failed attempt with a content, after `before`, the last one with the same content.
    fn new(content: Option<Hash>, why: Unusable, before: Option<&Self>) -> Self {
        let pause = before.map_or(PAUSE_MIN, |before| (before.pause * 2).min(PAUSE_MAX));
        let (why, due) = match why {
            Unusable::Invalid(why) => (why, None),
            Unusable::NotReady(why) => (why, Some(Instant::now() + pause)),
        };
        Self { content, why, pause, due }
    }

    fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Self::NotReady(why)
    }
}

/// Reads a configuration file, on a blocking thread, so that a file system that does not respond
/// delays nothing else.
///
/// # Errors
/// The reason, which names the file.
pub(crate) async fn read(path: &Path) -> Result<Content, String> {
    let name = path.to_owned();
    let content = tokio::task::spawn_blocking(|| std::fs::read(name).map(Content::new)).await;
    let content = content.unwrap_or_else(|why| Err(std::io::Error::other(why)));
    content.map_err(|why| format!("cannot read {}: {why}", path.display()))
}

#[cfg(test)]
mod tests;
