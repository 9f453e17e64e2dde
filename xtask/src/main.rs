//! The maintainer's tasks: code generation and house checks. `cargo xtask` lists them.

mod generate;
mod tidy;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <task>

  generate --facts DIR         write the generated tables from extracted facts
  generate --upstream DIR      write them from a release's own files
  generate --supplement FACTS_DIR UPSTREAM_DIR
                               write down what the extracted facts lack
  tidy                         check the house rules
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["generate", rest @ ..] => generate::run(rest),
        ["tidy"] => tidy::run(),
        _ => bail!(USAGE),
    }
}
