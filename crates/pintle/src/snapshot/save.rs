//! `pintle snapshot save`.

use std::io::{self, IsTerminal as _, Read, Write};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use bytes::{Buf as _, Bytes};
use clap::Args;
use pintle_server::{BackupEtcd, Download, EncryptionFile, store_directory};
use pintle_snapshot::{Header, Reader, Replacement, Saving};
use pintle_store::StoredState;
use tokio::runtime::{Builder, Runtime};

use super::{is_stream, line, now_unix_micros};
use crate::etcd_access::EtcdAccess;

/// Save the state of a server to a file
///
/// The snapshot has the state at one revision, even if clients write to the server meanwhile.
/// Encrypted values stay encrypted. A snapshot has no certificates and keys: copy pki/ of the data
/// directory, too.
///
/// The content is verified while it is written. FILE is replaced only when the new file is complete
/// and on disk. If the kubeconfig uses a credential plugin, save the snapshot with kubectl and
/// verify it:
///
///   kubectl get --raw /pintle/v1/snapshot > FILE && pintle snapshot inspect FILE
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
#[group(id = "source", required = true, multiple = false, args = ["kubeconfig", "data_dir", "etcd_servers"])]
pub(super) struct Save {
    /// Save from the running server in the current context of this kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Save from the stopped server with this data directory
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    etcd: EtcdAccess,
    /// The file of the EncryptionConfiguration that encrypts values in etcd and in the snapshot
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    encryption_provider_config: Option<PathBuf>,
    /// The file to write; - is standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Save {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let file = self.file.clone();
        if is_stream(&file) && io::stdout().is_terminal() {
            bail!("a snapshot is binary; name a file, or redirect standard output");
        }
        let named = || file.display().to_string();
        if is_stream(&file) {
            let mut out = io::stdout().lock();
            let saved = copy(self.source()?, &mut out)?;
            out.flush().context("standard output")?;
            writeln!(io::stderr(), "{saved}")?;
            return Ok(());
        }
        let source = self.source()?;
        let mut replacement = Replacement::begin(&file).with_context(named)?;
        let saved = copy(source, &mut replacement)?;
        replacement.finish().with_context(named)?;
        writeln!(io::stdout(), "{}: {saved}", file.display())?;
        Ok(())
    }

    /// Starts to read the state.
    fn source(self) -> anyhow::Result<Pieces> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let source = if let Some(kubeconfig) = &self.kubeconfig {
            let begun = runtime.block_on(Download::begin(kubeconfig));
            Source::Running(begun.map_err(anyhow::Error::msg)?)
        } else if let Some(data_dir) = &self.data_dir {
            let state = pintle_store::stopped_state(&store_directory(data_dir));
            let state = state.map_err(|error| match error {
                pintle_store::Error::InUse { path } => anyhow::anyhow!(
                    "{path} is in use by a server; save from the running server, with --kubeconfig"
                ),
                error => anyhow::Error::new(error).context(data_dir.display().to_string()),
            });
            Source::stopped(state?, "embedded")?
        } else {
            let encryption = self.encryption_provider_config;
            let encryption = encryption.map(|path| EncryptionFile { path, reloaded: false });
            let Some(etcd) = self.etcd.options()? else { bail!("--etcd-servers names no server") };
            let etcd = runtime.block_on(BackupEtcd::open(&etcd, encryption))?;
            Source::stopped(etcd.state(), "etcd")?
        };
        Ok(Pieces { source, runtime, current: Bytes::new() })
    }
}

/// The source of a snapshot's bytes.
enum Source {
    /// A running server sends the snapshot.
    Running(Download),
    /// This process makes the snapshot from a stopped server's state.
    Stopped(Box<Saving>),
}

impl Source {
    fn stopped(state: Box<dyn StoredState>, source: &str) -> anyhow::Result<Self> {
        let header = Header {
            created_unix_micros: now_unix_micros()?,
            program: concat!("pintle ", env!("CARGO_PKG_VERSION")).to_owned(),
            source: source.to_owned(),
        };
        Ok(Self::Stopped(Box::new(Saving::new(state, &header))))
    }
}

/// Reads a snapshot from its source, piece by piece.
struct Pieces {
    source: Source,
    runtime: Runtime,
    current: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.current.is_empty() {
            let next = match &mut self.source {
                Source::Running(download) => {
                    self.runtime.block_on(download.next()).map_err(io::Error::other)
                }
                Source::Stopped(saving) => {
                    self.runtime.block_on(saving.next()).map_err(io::Error::other)
                }
            };
            self.current = next?.unwrap_or_default();
        }
        let length = out.len().min(self.current.len());
        self.current.split_to(length).copy_to_slice(&mut out[..length]);
        Ok(length)
    }
}

/// Reads from one source, and writes all that was read to a copy.
struct Copied<'a, R> {
    from: R,
    to: &'a mut dyn Write,
}

impl<R: Read> Read for Copied<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(out)?;
        self.to.write_all(&out[..length])?;
        Ok(length)
    }
}

/// Copies a snapshot and verifies it; returns a message.
fn copy(from: impl Read, to: &mut dyn Write) -> anyhow::Result<String> {
    let mut reader = Reader::new(Copied { from, to }).context("cannot save the state")?;
    while reader.next_records().context("cannot save the state")?.is_some() {}
    let end = reader.end().context("the snapshot has no end")?;
    Ok(line(reader.header(), end))
}
