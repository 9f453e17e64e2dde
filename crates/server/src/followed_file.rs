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
    /// The hash of the last content. The content itself is not stored, because it may hold keys.
    last_hash: [u8; 32],
    /// Why the last reading failed; `None` if it did not.
    last_error: Option<String>,
}

impl FollowedFile {
    /// Follows the file at `path`, which had `content` when the server started.
    pub(crate) fn new(path: &Path, content: &[u8]) -> Self {
        let (interval, last_hash) = (tokio::time::interval(PERIOD), Sha256::digest(content).into());
        Self { path: path.to_owned(), interval, last_hash, last_error: None }
    }

    /// Waits until the content differs from the last one, and returns it; or the reason why the
    /// file cannot be read. While the file stays unreadable for the same reason, the reason is
    /// returned once. If the file then has its last content again, that is no change.
    pub(crate) async fn changed(&mut self) -> Result<Zeroizing<Vec<u8>>, String> {
        loop {
            self.interval.tick().await;
            match read(&self.path) {
                Ok(content) => {
                    self.last_error = None;
                    let hash = Sha256::digest(&content).into();
                    if hash != self.last_hash {
                        self.last_hash = hash;
                        return Ok(content);
                    }
                }
                Err(why) if self.last_error.as_ref() == Some(&why) => {}
                Err(why) => {
                    self.last_error = Some(why.clone());
                    return Err(why);
                }
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
        assert_eq!(changed(&mut file).await, None, "its last content is back");
        std::fs::write(&path, "").unwrap();
        assert_eq!(changed(&mut file).await.unwrap().unwrap().as_slice(), b"");
        std::fs::write(&path, "second").unwrap();
        assert_eq!(changed(&mut file).await.unwrap().unwrap().as_slice(), b"second");
    }
}
