//! `pintle man` and `pintle completion`: manual pages and shell completions, made from the
//! definition of the command line when they are asked for.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::flags::NOTES;

/// The program's name, with which manual pages begin.
const PROGRAM: &str = "pintle";

/// Print a manual page, or write all of them to a directory
///
///   pintle man | man -l -
///   pintle man serve | man -l -
///   pintle man --directory /usr/local/share/man/man1
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Manual {
    /// The command whose page is printed [default: the program's own page]
    #[arg(value_name = "COMMAND", conflicts_with = "directory")]
    command: Option<String>,
    /// Write the pages of the program and of all its commands to this directory
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Print a script that completes commands and flags in a shell
///
///   source <(pintle completion bash)                             in this shell
///   pintle completion bash > /etc/bash_completion.d/pintle       for all users
///   pintle completion zsh > "${fpath[1]}/_pintle"
///   pintle completion fish > ~/.config/fish/completions/pintle.fish
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completion {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: SupportedShell,
}

/// The shells with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SupportedShell {
    Bash,
    Zsh,
    Fish,
}

impl Completion {
    /// Prints the script.
    pub(crate) fn run(&self, mut program: Command) -> Result<()> {
        let shell = match self.shell {
            SupportedShell::Bash => Shell::Bash,
            SupportedShell::Zsh => Shell::Zsh,
            SupportedShell::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut program, PROGRAM, &mut script);
        Ok(io::stdout().write_all(&script)?)
    }
}

impl Manual {
    /// Prints or writes the pages.
    pub(crate) fn run(&self, mut program: Command) -> Result<()> {
        program.build();
        match (&self.directory, &self.command) {
            (Some(directory), _) => write_all(&program, directory),
            (None, None) => Ok(io::stdout().write_all(&page(&program)?)?),
            (None, Some(name)) => {
                let command = program.find_subcommand(name).ok_or_else(|| {
                    let names: Vec<&str> =
                        program.get_subcommands().map(Command::get_name).collect();
                    anyhow!("there is no command {name:?}; the commands are {}", names.join(", "))
                })?;
                Ok(io::stdout().write_all(&page(command)?)?)
            }
        }
    }
}

fn write_all(program: &Command, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))?;
    for command in with_subcommands(program) {
        let path = directory.join(format!("{}.1", page_name(command)));
        fs::write(&path, page(command)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// A command and all its subcommands that have a page, at every depth.
fn with_subcommands(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|command| command.get_name() != "help");
    std::iter::once(command).chain(below.flat_map(with_subcommands)).collect()
}

/// The name of a command's page: `pintle-serve`.
fn page_name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(PROGRAM).replace(' ', "-")
}

/// The page of a command, in roff.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let notes = command.get_after_long_help().map(ToString::to_string);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let name = page_name(command);
    let named = command.clone().display_name(&name).override_usage(usage);
    let page = Man::new(named)
        .title(name.to_uppercase())
        .manual("Pintle")
        // A page has no date, so that the same source makes the same bytes. The space is needed:
        // without it, man would take the next argument, the source, for the date.
        .date(" ")
        .source(format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION")));
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut out)?;
    }
    if notes.is_some_and(|notes| !notes.is_empty()) {
        sections(NOTES, &mut out)?;
    }
    Ok(out)
}

/// The notes of a command's help as sections. A line without indentation that ends with a colon is
/// a heading; lines that are indented by four spaces or more keep their line breaks.
fn sections(notes: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::new();
    for line in notes.lines() {
        match line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            Some(heading) => _ = roff.control("SH", [heading.to_uppercase().as_str()]),
            None if line.trim().is_empty() => _ = roff.control("PP", []),
            None => {
                if line.starts_with("    ") {
                    roff.control("br", []);
                }
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
        }
    }
    roff.to_writer(out)
}
