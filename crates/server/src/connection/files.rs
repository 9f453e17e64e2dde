//! The process's limit of open files: each connection takes one file, and each session another.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::ConnectionLimits;

/// File descriptors reserved for everything else (the store, certificates, webhooks), but at most
/// half of all.
const FILES_RESERVED: u64 = 256;

/// Raises the process's soft limit of open files to the hard limit, as Go's programs do. Returns
/// the limits, with fewer connections and sessions if the limit of open files is too low for them.
pub(crate) fn within_files(wanted: ConnectionLimits) -> ConnectionLimits {
    let Some(files) = files_max() else { return wanted };
    let room = usize::try_from(files.saturating_sub(FILES_RESERVED.min(files / 2)));
    let limits = share(wanted.clone(), room.unwrap_or(usize::MAX));
    if limits != wanted {
        let ConnectionLimits { connections_max, sessions_max, .. } = limits;
        tracing::warn!(
            "the server accepts {connections_max} connections and {sessions_max} sessions, because the limit of open files is {files}"
        );
    }
    limits
}

/// The limit of open files; `None` if there is none.
fn files_max() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

/// Divides the files between connections and sessions in proportion to their configured limits.
fn share(wanted: ConnectionLimits, room: usize) -> ConnectionLimits {
    let all = wanted.connections_max.saturating_add(wanted.sessions_max);
    if all <= room {
        return wanted;
    }
    let sessions_max = (room as u128 * wanted.sessions_max as u128 / all as u128) as usize;
    ConnectionLimits { connections_max: room - sessions_max, sessions_max, ..wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_are_shared_by_connections_and_sessions() {
        let shared = |room| {
            let limits = share(ConnectionLimits::default(), room);
            (limits.connections_max, limits.sessions_max)
        };
        assert_eq!(shared(1 << 20), (16_384, 4_096));
        assert_eq!(shared(20_480), (16_384, 4_096));
        assert_eq!(shared(1_000), (800, 200));
    }
}
