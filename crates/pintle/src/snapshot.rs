//! `pintle snapshot`: saves the state of a running or stopped server, restores it, and shows the
//! content of a snapshot.

mod inspect;
mod restore;
mod save;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use pintle_meta::time;
use pintle_snapshot::{End, Header};

use inspect::Inspect;
use restore::Restore;
use save::Save;

/// Save the state of a server to a file, restore it, or inspect the file
///
///   pintle snapshot save --kubeconfig .pintle/admin.kubeconfig FILE    from a running server
///   pintle snapshot save --data-dir .pintle FILE                       from a stopped server
///   pintle snapshot restore --data-dir NEW FILE                        into a new directory
///   pintle snapshot inspect FILE                                       check the file and count its objects
///
/// FILE may be - for standard output or input.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Save(Save),
    Restore(Restore),
    Inspect(Inspect),
}

impl Snapshot {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.action {
            Action::Save(save) => save.run(),
            Action::Restore(restore) => restore.run(),
            Action::Inspect(inspect) => inspect.run(),
        }
    }
}

/// Whether a path is standard input or output.
fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens a snapshot, or standard input.
fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    if is_stream(path) {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(File::open(path).with_context(|| path.display().to_string())?))
}

/// The microseconds since 1970.
fn now_unix_micros() -> anyhow::Result<i64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(i64::try_from(now.as_micros())?)
}

/// One line about a snapshot that was read to its end.
fn line(header: &Header, end: &End) -> String {
    let taken = time::format(header.created_unix_micros);
    let End { revision, records, bytes, sha256 } = end;
    format!(
        "{records} objects at revision {revision}, taken {taken}, {bytes} bytes, sha256 {sha256}"
    )
}
