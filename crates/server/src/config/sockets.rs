//! The names of Unix sockets, as gRPC writes them.

use std::ffi::OsString;
use std::path::PathBuf;

/// The path of the socket that a `unix:` URL names: `unix:path`, `unix:///path`, or `unix:///@name`
/// for an abstract name.
pub(crate) fn socket(url: &str) -> PathBuf {
    let path = url.strip_prefix("unix:").unwrap_or(url);
    let path = path.strip_prefix("//").unwrap_or(path);
    match path.strip_prefix("/@").or_else(|| path.strip_prefix('@')) {
        Some(name) => OsString::from(format!("\0{name}")).into(),
        None => path.into(),
    }
}
