//! Files that only their owner may read.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use pintle_store::entries;

use crate::Error;

/// Creates a directory and its parents for the owner only. An existing one keeps its permissions.
pub(crate) fn make_private_directory(path: &Path) -> Result<(), Error> {
    entries::make_private_directory(path).map_err(|why| {
        match path.ancestors().find(|part| part.is_file()) {
            Some(file) => Error::NotDirectory { path: file.to_owned() },
            None => error("create the directory", path, why),
        }
    })
}

/// Writes a file for the owner only, atomically and durably: a crash leaves no partial key, and a
/// power failure does not take a key that clients and the store depend on.
///
/// The text is written to a temporary file first, which is always created here: an existing one
/// could be readable for others, or a link.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    if is_unchanged(path, text) {
        return Ok(()); // so that a server can restart on a full disk
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    let new = path.with_file_name(name);
    match fs::remove_file(&new) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            return Err(error("replace", &new, why));
        }
        Ok(()) | Err(_) => {} // the remains of a crash, if there are any
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let written = options.open(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let named = written.and_then(|()| fs::rename(&new, path));
    named.and_then(|()| entries::sync_entry(path)).map_err(|why| error("write", path, why))
}

/// Whether the file has this text already and only its owner can read it.
fn is_unchanged(path: &Path, text: &str) -> bool {
    let is_private = fs::symlink_metadata(path).is_ok_and(|metadata| {
        #[cfg(unix)]
        let is_private = {
            use std::os::unix::fs::PermissionsExt;
            metadata.permissions().mode() & 0o077 == 0
        };
        #[cfg(not(unix))]
        let is_private = true;
        metadata.is_file() && is_private
    });
    is_private && fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
}

#[cfg(all(test, unix))]
mod tests;

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|why| error("read", path, why))
}

/// Reads a file that may be missing.
pub(super) fn read_if_any(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(error("read", path, why)),
    }
}

fn error(action: &'static str, path: &Path, why: std::io::Error) -> Error {
    Error::File { action, path: path.to_owned(), why }
}
