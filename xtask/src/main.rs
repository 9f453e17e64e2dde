//! The maintainer's tasks: code generation, packages and house checks. `cargo xtask` lists them.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod generate;
mod package;
mod tidy;

use std::process::ExitCode;

use anyhow::anyhow;

const USAGE: &str = "\
usage: cargo xtask <task>

  generate --facts DIR         write the generated tables from extracted facts
  generate --upstream DIR      write them from a release's own files
  generate --supplement FACTS_DIR UPSTREAM_DIR
                               write down what the extracted facts lack
  generate --removed FACTS_DIR UPSTREAM_DIR…
                               write the tables of versions that are no longer served
  profile                      measure the program for its compiler: packaging/profiles/
  package WHAT                 make a package of the program; without WHAT, list them
  tidy                         check the house rules
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["generate", rest @ ..] => generate::run(rest),
        ["package", rest @ ..] => package::run(rest),
        ["profile"] => package::make_profile(),
        ["tidy"] => tidy::run(),
        _ => Err(anyhow!(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
