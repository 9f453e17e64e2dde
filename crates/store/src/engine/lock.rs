//! The lock of a store's directory: a server has it alone, readers of a stopped store share it.
//!
//! It is a lock of the kernel on the file `lock`, so it ends with the process, and it is the same for
//! processes in different containers.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::Failure;
use super::directory::LOCK;
use crate::Error;

/// How often, and after which pauses, a server asks again for a lock that a reader has: readers take
/// some seconds.
const ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// Locks a directory for this process alone, by its open lock file. Waits for readers, but not for
/// another server.
///
/// # Errors
/// Another process has the store open.
pub(super) fn exclusive(lock: &File, directory: &Path) -> Result<(), Error> {
    for _ in 0..ATTEMPTS {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(why)) => return Err(failure(directory, why).into()),
            Err(TryLockError::WouldBlock) => {}
        }
        // Only readers share the lock.
        lock.try_lock_shared().map_err(|why| refused(directory, why))?;
        lock.unlock().map_err(|why| failure(directory, why))?;
        sleep(PAUSE);
    }
    Err(refused(directory, TryLockError::WouldBlock))
}

/// Locks a directory for a reader, until the result is dropped: no process has the store open
/// meanwhile. Nothing in the directory is changed. `None` if there is no lock file, as in a copy of a
/// directory: a server that starts would not be noticed.
///
/// # Errors
/// A process has the store open.
pub(crate) fn share(directory: &Path) -> Result<Option<File>, Error> {
    let lock = match File::open(directory.join(LOCK)) {
        Ok(lock) => lock,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(failure(directory, why).into()),
    };
    lock.try_lock_shared().map_err(|why| refused(directory, why))?;
    Ok(Some(lock))
}

fn refused(directory: &Path, why: TryLockError) -> Error {
    match why {
        TryLockError::WouldBlock => Error::InUse { path: directory.display().to_string() },
        TryLockError::Error(why) => failure(directory, why).into(),
    }
}

fn failure(directory: &Path, why: std::io::Error) -> Failure {
    Failure(format!("{}: {why}", directory.join(LOCK).display()))
}
