//! Archives whose bytes depend only on their files: the entries are sorted, have the same time, and
//! belong to root or to a user who is given by a number.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// The files and directories of an archive, by path.
pub(super) struct Tree {
    epoch_seconds: u64,
    entries: BTreeMap<String, Entry>,
}

struct Entry {
    mode: u32,
    /// The number of the user and of the group.
    owner: u64,
    /// `None` for a directory.
    content: Option<Vec<u8>>,
}

impl Tree {
    pub(super) fn new(epoch_seconds: u64) -> Self {
        Self { epoch_seconds, entries: BTreeMap::new() }
    }

    pub(super) fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        let entry = Entry { mode, owner: 0, content: Some(content.into()) };
        self.entries.insert(path.to_owned(), entry);
    }

    pub(super) fn directory(&mut self, path: &str, mode: u32) {
        self.owned_directory(path, mode, 0);
    }

    pub(super) fn owned_directory(&mut self, path: &str, mode: u32, owner: u64) {
        self.entries.insert(format!("{path}/"), Entry { mode, owner, content: None });
    }

    /// Adds the directories above all entries.
    pub(super) fn add_parents(&mut self) {
        let paths: Vec<String> = self.entries.keys().cloned().collect();
        for path in paths {
            for (at, _) in path.trim_end_matches('/').match_indices('/') {
                let parent = Entry { mode: 0o755, owner: 0, content: None };
                self.entries.entry(path[..=at].to_owned()).or_insert(parent);
            }
        }
    }

    /// The size of all files.
    pub(super) fn bytes(&self) -> usize {
        self.entries.values().flat_map(|entry| &entry.content).map(Vec::len).sum()
    }

    pub(super) fn tar(&self) -> Result<Vec<u8>> {
        let mut archive = Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let mut header = Header::new_gnu();
            header.set_mode(entry.mode);
            header.set_uid(entry.owner);
            header.set_gid(entry.owner);
            header.set_mtime(self.epoch_seconds);
            let content = entry.content.as_deref();
            header.set_entry_type(content.map_or(EntryType::Directory, |_| EntryType::Regular));
            let content = content.unwrap_or_default();
            header.set_size(u64::try_from(content.len())?);
            archive.append_data(&mut header, path, content)?;
        }
        Ok(archive.into_inner()?)
    }

    pub(super) fn gzip(&self) -> Result<Vec<u8>> {
        gzip(&self.tar()?)
    }
}

/// Compresses bytes; the header has no time and no name.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
