//! The command line: the program's commands, and how it is read with the file of `--config`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::certificates::Certificates;
use crate::convert::Convert;
use crate::doctor::Doctor;
use crate::flags::{FlagFile, Serve};
use crate::kubeconfig::Kubeconfig;
use crate::manual::{Completion, Manual};
use crate::snapshot::Snapshot;

/// A Kubernetes API server in one binary.
///
/// Serves the Kubernetes v1.36 API from an embedded store: kubectl, client-go, controller-runtime
/// and kube-rs work with it as they are. No nodes, nothing to install beside it; etcd only where
/// several servers are to work on the same objects.
#[derive(Debug, Parser)]
#[command(name = "pintle", version, max_term_width = 100)]
pub(crate) struct Pintle {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Box<Serve>),
    Certificates(Certificates),
    Convert(Convert),
    Snapshot(Box<Snapshot>),
    Kubeconfig(Kubeconfig),
    /// Make a directory for envtest, in which this program is kube-apiserver and etcd
    ///
    ///   eval "$(pintle envtest-assets bin)"; go test ./...
    #[command(verbatim_doc_comment)]
    EnvtestAssets {
        /// Where to make it
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    Doctor(Doctor),
    Completion(Completion),
    #[command(name = "man")]
    Manual(Manual),
}

/// The flags of a command with their values.
pub(crate) type FlagValues = Vec<(String, String)>;

/// A command line that was read.
#[derive(Debug)]
pub(crate) struct CommandLine {
    pub(crate) command: Command,
    /// The command's flags with their values, including those of the file and the defaults.
    pub(crate) flag_values: FlagValues,
    /// The flags of the file that `--config` names.
    pub(crate) file: Option<FlagFile>,
}

impl Pintle {
    /// Parses a command line and the file that its `--config` names.
    ///
    /// # Errors
    /// A [`clap::Error`] for the command line itself; others for the file.
    pub(crate) fn read<A>(arguments: impl IntoIterator<Item = A>) -> anyhow::Result<CommandLine>
    where
        A: Into<OsString> + Clone,
    {
        let mut arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let mut command = Self::command();
        let mut matches = match command.try_get_matches_from_mut(&arguments) {
            // The file may have the flag that is missing.
            Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
                let without_errors = Self::command().ignore_errors(true);
                without_errors.try_get_matches_from(&arguments).map_err(|_| error)?
            }
            matches => matches.map_err(with_hint_about_booleans)?,
        };
        let file = match matches.subcommand() {
            Some((name, matches)) => match command.find_subcommand(name) {
                Some(command) => FlagFile::read(command, matches)?,
                None => None,
            },
            None => None,
        };
        arguments.extend(file.iter().flat_map(FlagFile::arguments));
        let located = |error: clap::Error| match &file {
            Some(file) => file.locate_usage(error),
            None => error.into(),
        };
        matches = command.try_get_matches_from_mut(&arguments).map_err(located)?;
        let flag_values = match matches.subcommand() {
            Some((name, matches)) => flag_values(command.find_subcommand(name), matches),
            None => FlagValues::new(),
        };
        let read = Self::from_arg_matches(&matches);
        let read = read.map_err(|error| located(error.format(&mut command)))?;
        Ok(CommandLine { command: read.command, flag_values, file })
    }
}

/// Adds a hint to the error about `--anonymous-auth false`: as with Go's flags, the value of a
/// boolean flag follows an equals sign, and `false` alone is an argument of its own.
fn with_hint_about_booleans(mut error: clap::Error) -> clap::Error {
    let boolean = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) if matches!(&**argument, "true" | "false") => {
            argument.clone()
        }
        _ => return error,
    };
    let hint = format!("the value of a boolean flag follows an equals sign: --FLAG={boolean}");
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    error
}

fn flag_values(command: Option<&clap::Command>, matches: &ArgMatches) -> FlagValues {
    let all = command.into_iter().flat_map(clap::Command::get_arguments);
    let flags = all.filter_map(|flag| Some((flag.get_long()?, flag.get_id().as_str())));
    flags
        .map(|(name, id)| {
            let values = matches.try_get_raw(id).ok().flatten().into_iter().flatten();
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            (name.to_owned(), values.join(","))
        })
        .collect()
}

#[cfg(test)]
mod tests;
