//! `pintle snapshot inspect`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use pintle_meta::time;
use pintle_snapshot::{Collection, Summary};
use pintle_value::{Value, json};

use super::open;

/// Check a snapshot from its first byte to its last, and count its objects
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct Inspect {
    /// The output format
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// The snapshot; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

impl Inspect {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let summary = Summary::read(open(&self.file)?);
        let summary = summary.with_context(|| self.file.display().to_string())?;
        let text = match self.output {
            Output::Text => text(&summary),
            Output::Json => format!("{}\n", json::to_string(&value(&summary))),
        };
        io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}

fn text(summary: &Summary) -> String {
    let Summary { header, end, collections } = summary;
    let mut text = format!(
        "revision  {}\ntaken     {}\nprogram   {}\nstore     {}\nobjects   {}\nbytes     {}\nsha256    {}\n\n",
        end.revision,
        time::format(header.created_unix_micros),
        header.program,
        header.source,
        end.records,
        end.bytes,
        end.sha256,
    );
    let widest = collections.keys().map(|name| name.len()).max().unwrap_or(0).max(10);
    text.push_str(&format!("{:<widest$}  {:>9}  {:>12}\n", "COLLECTION", "OBJECTS", "BYTES"));
    for (name, Collection { objects, bytes }) in collections {
        text.push_str(&format!("{name:<widest$}  {objects:>9}  {bytes:>12}\n"));
    }
    text
}

fn value(summary: &Summary) -> Value {
    let Summary { header, end, collections } = summary;
    let number = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
    let collections: Vec<Value> = collections
        .iter()
        .map(|(name, Collection { objects, bytes })| {
            Value::from([
                ("name", Value::from(&**name)),
                ("objects", number(*objects)),
                ("bytes", number(*bytes)),
            ])
        })
        .collect();
    Value::from([
        ("revision", number(end.revision.0)),
        ("taken", Value::from(time::format(header.created_unix_micros))),
        ("program", Value::from(header.program.as_str())),
        ("store", Value::from(header.source.as_str())),
        ("objects", number(end.records)),
        ("bytes", number(end.bytes)),
        ("sha256", Value::from(end.sha256.as_str())),
        ("collections", Value::from(collections)),
    ])
}
