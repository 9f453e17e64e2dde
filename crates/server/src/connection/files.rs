//! How many files the process may open, of which each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors for everything but connections: the store, certificates, webhooks.
const FILES_RESERVED: u64 = 256;

/// Lets the process open as many files as it is allowed to, as Go's programs do, and tells for how many
/// connections that suffices; no more than are wanted.
pub(super) fn connections_max(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let Some(files) = current else { return wanted };
    let room = usize::try_from(files.saturating_sub(FILES_RESERVED.min(files / 2)));
    let possible = room.unwrap_or(usize::MAX);
    if possible < wanted {
        tracing::warn!("room for {possible} connections: no more than {files} files may be open");
    }
    possible.min(wanted)
}
