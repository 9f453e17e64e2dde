//! Values that are read from files, and read again when the files change.

use std::fs;
use std::path::PathBuf;

use crate::Error;

/// A value that is read from files. While the files cannot be used, it stays as it was: the two files of a
/// pair are seldom replaced at the same moment.
pub(crate) struct Followed<T> {
    files: Vec<PathBuf>,
    /// The contents that were looked at last, usable or not; `None` for a file that could not be read.
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
        // The contents come first: a change that follows is found by the next look.
        let seen = contents(&files);
        let value = read()?;
        Ok(Self { files, seen, read: Box::new(read), value })
    }

    /// The value as it was read last.
    pub(crate) const fn value(&self) -> &T {
        &self.value
    }

    /// Reads the value again if a file has changed since the last look; tells whether it was read. What
    /// cannot be used is logged once.
    pub(crate) fn refresh(&mut self) -> bool {
        let contents = contents(&self.files);
        if contents == self.seen {
            return false;
        }
        self.seen = contents;
        match (self.read)() {
            Ok(value) => self.value = value,
            Err(error) => {
                tracing::error!(%error, "a file that changed cannot be used; its earlier content stays in use");
                return false;
            }
        }
        for file in &self.files {
            tracing::info!(file = %file.display(), "read again after a change");
        }
        true
    }
}

fn contents(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    files.iter().map(|file| fs::read(file).ok()).collect()
}
