//! Every script against Pintle in this process, each a case of its own in the output.
//!
//! `cargo test -p apiscript --test scripts -- WORD…` runs those whose file, sentence or ids have
//! one of the words.

mod servers;

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    servers::run(Ok)
}
