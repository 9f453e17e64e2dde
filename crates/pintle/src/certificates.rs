//! `pintle certificates`: lists when certificates expire.

use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use clap::Args;
use pintle_meta::time;
use pintle_server::{ListedCertificate, list_certificates};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Show when certificates expire
///
///   pintle certificates                           the certificates that the server generated, in .pintle/pki
///   pintle certificates /etc/kubernetes/pki       the certificates of another directory, or of files
///
/// Exits with status 1 if a certificate has expired.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Certificates {
    /// Files with certificates as PEM, or directories of such files that end in .crt
    #[arg(value_name = "PATH", default_value = ".pintle/pki")]
    paths: Vec<PathBuf>,
}

impl Certificates {
    /// Prints a line for each certificate.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let now = i64::try_from(now)?;
        let mut listed = Vec::new();
        for path in &self.paths {
            listed.extend(list_certificates(path)?);
        }
        let rows: Vec<_> = listed.iter().map(|certificate| row(certificate, now)).collect();
        let mut out = std::io::stdout().lock();
        for row in std::iter::once(&HEADER.map(str::to_owned)).chain(&rows) {
            writeln!(out, "{}", line(row, &rows))?;
        }
        match listed.iter().filter(|certificate| certificate.until_unix_seconds < now).count() {
            0 => Ok(()),
            1 => bail!("a certificate has expired"),
            count => bail!("{count} certificates have expired"),
        }
    }
}

const HEADER: [&str; 4] = ["EXPIRES", "REMAINING", "FILE", "SUBJECT"];

fn row(certificate: &ListedCertificate, now: i64) -> [String; 4] {
    let until = certificate.until_unix_seconds;
    let remaining = match until - now {
        ..0 => "expired".to_owned(),
        seconds if seconds < DAY_SECONDS => "less than a day".to_owned(),
        seconds => format!("{}d", seconds / DAY_SECONDS),
    };
    [
        time::format(until.saturating_mul(time::SECOND)),
        remaining,
        certificate.path.display().to_string(),
        certificate.subject.clone(),
    ]
}

/// A row with its cells as wide as the widest of their column.
fn line(row: &[String; 4], rows: &[[String; 4]]) -> String {
    let mut text = String::new();
    for (column, cell) in row.iter().enumerate() {
        let widest = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let width = widest.max(HEADER[column].len()) + 2;
        text.push_str(&format!("{cell:<width$}"));
    }
    text.trim_end().to_owned()
}
