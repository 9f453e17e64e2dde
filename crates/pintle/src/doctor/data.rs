//! The data directory: its permissions, the free space on its disk, and its store.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use pintle_server::{Config, inspect_store, store_directory};
use pintle_store::Error as StoreError;
use rustix::fs::Access;

use super::Finding;

const CHECK: &str = "data";
const STORE: &str = "store";
/// A disk with less free space than this counts as full.
const FREE_ERROR: u64 = 64 << 20;
/// A disk with less free space than this may soon be full.
const FREE_WARNING: u64 = 1 << 30;

/// The process that has the store open, if this system names it. A process of another container is
/// not named.
pub(super) fn holder(config: &Config) -> Option<u32> {
    let lock = fs::metadata(store_directory(&config.data_dir).join("lock")).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    holder_of(&locks, lock.dev(), lock.ino())
}

/// Finds the holder of a lock on a file in the text of `/proc/locks`:
/// `1: FLOCK  ADVISORY  WRITE 4711 08:01:12345 0 EOF`, with the device in hexadecimal.
fn holder_of(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            [_, "FLOCK", _, "WRITE", process, found, ..] if *found == file => process.parse().ok(),
            _ => None,
        }
    })
}

pub(super) fn check(config: &Config, holder: Option<u32>) -> Vec<Finding> {
    let directory = &config.data_dir;
    if config.ephemeral {
        return vec![Finding::ok(CHECK, "--ephemeral", "nothing is stored on disk")];
    }
    let mut findings = Vec::new();
    match fs::metadata(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.push(Finding::ok(
                CHECK,
                directory.display(),
                "does not exist; the server creates it",
            ));
            findings.extend(directory.ancestors().find(|part| part.is_dir()).map(free_space));
            return findings;
        }
        Err(error) => {
            findings.push(Finding::error(
                CHECK,
                directory.display(),
                error,
                "give this user the right to read it, or choose another --data-dir",
            ));
            return findings;
        }
        Ok(found) if !found.is_dir() => {
            findings.push(Finding::error(
                CHECK,
                directory.display(),
                "is a file, not a directory",
                "choose another --data-dir, or move the file away",
            ));
            return findings;
        }
        Ok(_) => {}
    }
    let store = store_directory(&config.data_dir);
    for part in [directory, &store, &config.certificate_directory()] {
        findings.extend(permissions(part));
    }
    findings.push(free_space(directory));
    if config.etcd.is_none() {
        findings.push(of_store(config, &store, holder));
    }
    findings
}

/// The problems of a directory's permissions.
fn permissions(directory: &Path) -> Vec<Finding> {
    let Ok(found) = fs::metadata(directory) else { return Vec::new() };
    let mut findings = Vec::new();
    let subject = &directory.display();
    if rustix::fs::access(directory, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err()
    {
        findings.push(Finding::error(
            CHECK,
            subject,
            "this user may not write to it",
            "run as the user of the server, or change its owner or mode",
        ));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        findings.push(Finding::warning(
            CHECK,
            subject,
            format!("other users may write to it (mode {mode:03o})"),
            format!("chmod go-w {subject}"),
        ));
    }
    findings
}

fn free_space(directory: &Path) -> Finding {
    let subject = &directory.display();
    match rustix::fs::statvfs(directory) {
        Err(error) => Finding::warning(CHECK, subject, error, "check the disk"),
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let message = format!("its disk has {} MiB free", free >> 20);
            let advice = "free some space, or choose a --data-dir on another disk";
            if free < FREE_ERROR {
                Finding::error(CHECK, subject, message, advice)
            } else if free < FREE_WARNING {
                Finding::warning(CHECK, subject, message, advice)
            } else {
                Finding::ok(CHECK, subject, message)
            }
        }
    }
}

fn of_store(config: &Config, store: &Path, holder: Option<u32>) -> Finding {
    let subject = &store.display();
    if !store.exists() {
        return Finding::ok(STORE, subject, "does not exist; the server creates it");
    }
    if let Some(process) = holder {
        let message = format!("is in use by process {process}; its records are not checked");
        return Finding::ok(STORE, subject, message);
    }
    match inspect_store(config) {
        Ok(found) => {
            let message = format!(
                "{} records, revisions {} to {}, {} KiB",
                found.records,
                found.floor,
                found.newest,
                found.bytes >> 10
            );
            Finding::ok(STORE, subject, message)
        }
        Err(pintle_server::Error::Flag { flag, reason }) => {
            let advice = "mend the file, or start the plugins that it names";
            Finding::error(STORE, format!("--{flag}"), reason, advice)
        }
        Err(pintle_server::Error::Store(StoreError::InUse { .. })) => {
            Finding::ok(STORE, subject, "is in use by another process; its records are not checked")
        }
        Err(error) => {
            let text = error.to_string();
            let text = text.trim_start_matches("the store takes no writes: ");
            let advice = match text.contains("cannot be decrypted") {
                true => "name the file with these keys",
                false => "restore a copy of the directory, or a snapshot into another --data-dir",
            };
            Finding::error(STORE, subject, text, advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_by_device_and_inode() {
        const LOCKS: &str = "\
1: POSIX  ADVISORY  WRITE 11 08:01:77 0 EOF
2: FLOCK  ADVISORY  READ  12 08:01:77 0 EOF
2: -> FLOCK  ADVISORY  WRITE 13 08:01:77 0 EOF
3: FLOCK  ADVISORY  WRITE 14 08:02:77 0 EOF
4: FLOCK  ADVISORY  WRITE 15 08:01:77 0 EOF
";
        let device = rustix::fs::makedev(8, 1);
        assert_eq!(holder_of(LOCKS, device, 77), Some(15));
        assert_eq!(holder_of(LOCKS, device, 78), None);
        assert_eq!(holder_of("", device, 77), None);
    }
}
