//! A configuration file that the server reads periodically to notice its changes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Interval;
use zeroize::Zeroizing;

/// How often a configuration file is read to see whether it changed.
const PERIOD: Duration = Duration::from_secs(1);

/// A configuration file whose changes the server follows.
pub(crate) struct FollowedFile {
    path: PathBuf,
    interval: Interval,
    last: Reading,
}

/// What the last reading of the file found. The content is hashed, because it may hold keys.
type Reading = Result<[u8; 32], String>;

impl FollowedFile {
    /// Follows the file at `path`, which had `content` when the server started.
    pub(crate) fn new(path: &Path, content: &[u8]) -> Self {
        let (interval, last) = (tokio::time::interval(PERIOD), Ok(Sha256::digest(content).into()));
        Self { path: path.to_owned(), interval, last }
    }

    /// Waits until a reading differs from the last one, and returns its content or the reason why the file cannot be
    /// read. A file that stays unreadable for one reason is returned once.
    pub(crate) async fn changed(&mut self) -> Result<Zeroizing<Vec<u8>>, String> {
        loop {
            self.interval.tick().await;
            let read = read(&self.path);
            let reading = match &read {
                Ok(content) => Ok(Sha256::digest(content).into()),
                Err(why) => Err(why.clone()),
            };
            if reading != self.last {
                self.last = reading;
                return read;
            }
        }
    }
}

/// Reads a configuration file. The content is wiped from memory after use.
///
/// # Errors
/// The reason, which names the file.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let content = std::fs::read(path);
    content.map(Zeroizing::new).map_err(|why| format!("cannot read {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_change_is_returned_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("configuration.yaml");
        std::fs::write(&path, "first").unwrap();
        let mut file = FollowedFile::new(&path, b"first");
        let changed = async |file: &mut FollowedFile| {
            tokio::time::timeout(PERIOD * 3, file.changed()).await.ok()
        };
        assert_eq!(changed(&mut file).await, None);

        std::fs::write(&path, "second").unwrap();
        assert_eq!(changed(&mut file).await.unwrap().unwrap().as_slice(), b"second");
        assert_eq!(changed(&mut file).await, None);

        std::fs::remove_file(&path).unwrap();
        assert!(changed(&mut file).await.unwrap().unwrap_err().contains("No such file"));
        assert_eq!(changed(&mut file).await, None);

        std::fs::create_dir(&path).unwrap();
        assert!(changed(&mut file).await.unwrap().unwrap_err().contains("directory"));
        assert_eq!(changed(&mut file).await, None);

        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "second").unwrap();
        assert_eq!(changed(&mut file).await.unwrap().unwrap().as_slice(), b"second");
    }
}
