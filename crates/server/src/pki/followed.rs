//! Values that are reloaded when their files change.

use std::fs;
use std::path::PathBuf;

use crate::Error;

/// A value that is read from files. While the files are invalid, the last valid value stays: the
/// two files of a pair are seldom replaced at once.
pub(crate) struct Followed<T> {
    files: Vec<PathBuf>,
    /// The last contents, valid or not; `None` for an unreadable file.
    seen: Vec<Option<Vec<u8>>>,
    read: Box<dyn Fn() -> Result<T, Error> + Send + Sync>,
    value: T,
}

impl<T> Followed<T> {
    /// Reads the value for the first time.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn new(
        files: Vec<PathBuf>,
        read: impl Fn() -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        // The contents are read before the value, so that a later change is noticed.
        let seen = contents(&files);
        let value = read()?;
        Ok(Self { files, seen, read: Box::new(read), value })
    }

    /// The current value.
    pub(crate) const fn value(&self) -> &T {
        &self.value
    }

    /// Reloads the value if a file has changed; returns true if there is a new value. A failure is
    /// logged once for each change.
    pub(crate) fn refresh(&mut self) -> bool {
        let contents = contents(&self.files);
        if contents == self.seen {
            return false;
        }
        self.seen = contents;
        match (self.read)() {
            Ok(value) => self.value = value,
            Err(error) => {
                tracing::error!(%error, "cannot reload a file that has changed; its previous content stays in use");
                return false;
            }
        }
        for file in &self.files {
            tracing::info!(file = %file.display(), "reloaded a file that has changed");
        }
        true
    }
}

fn contents(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    files.iter().map(|file| fs::read(file).ok()).collect()
}
