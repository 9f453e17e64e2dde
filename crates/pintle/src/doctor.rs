//! `pintle doctor`: checks what `pintle serve` with the same flags would use, and changes nothing.
//!
//! Each check returns findings: the subject, its problem, and advice.

mod certificates;
mod data;
mod kubeconfig;
mod network;
mod system;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use pintle_value::{Value, json};

use crate::flags::Serve;

const ABOUT: &str = "Check the files and resources that a server would use";
const LONG_ABOUT: &str = "\
Check the files and resources that a server would use

Accepts all flags of pintle serve, including --config, and checks what a server with these flags would
use: the data directory and its store, certificates, the address and the port, limits of the system,
the clock, and the administrator's kubeconfig. Nothing is changed. The records of a store are read only
if no server has it open.

The exit status is 0 if there are no problems, 2 if there are warnings, and 3 if a server would not
work. It is 1 if the flags contradict each other or --config cannot be read, and 2 if a flag cannot be
parsed.

Examples:

  pintle doctor
  pintle doctor --data-dir /var/lib/pintle
  pintle doctor --config /etc/pintle.yaml -o json";

/// The flags in the help of the command; for the others it refers to `pintle serve`.
const SHOWN: [&str; 5] = ["output", "config", "data_dir", "cert_dir", "help"];

/// `pintle doctor`. Its flags are defined only when it is called, because they are as many as those
/// of `pintle serve`, whose start must not wait for them.
#[derive(Debug)]
pub(crate) struct Doctor(Box<Flags>);

#[derive(Args, Debug)]
struct Flags {
    /// The format of the findings
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    serve: Serve,
}

impl Args for Doctor {
    fn augment_args(command: Command) -> Command {
        command.about(ABOUT).long_about(LONG_ABOUT).defer(|command| {
            let command = Flags::augment_args(command).about(ABOUT).long_about(LONG_ABOUT);
            command.after_long_help("").mut_args(|flag| {
                let is_shown = SHOWN.contains(&flag.get_id().as_str());
                flag.hide(!is_shown)
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Doctor {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Flags::from_arg_matches(matches).map(|flags| Self(Box::new(flags)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    /// Nothing is wrong.
    Ok,
    /// A server works, but may stop working, or is not secure.
    Warning,
    /// A server does not start, or does not work.
    Error,
}

impl Severity {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    const fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 2,
            Self::Error => 3,
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    severity: Severity,
    /// The check: `store`, `certificates`.
    check: &'static str,
    /// The file, address or limit.
    subject: String,
    /// The problem, or the state if there is none.
    message: String,
    /// What the operator should do; empty if there is no problem.
    advice: String,
}

impl Finding {
    fn ok(check: &'static str, subject: impl ToString, message: impl ToString) -> Self {
        Self::new(Severity::Ok, check, subject, message, "")
    }

    fn warning(
        check: &'static str,
        subject: impl ToString,
        message: impl ToString,
        advice: impl ToString,
    ) -> Self {
        Self::new(Severity::Warning, check, subject, message, advice)
    }

    fn error(
        check: &'static str,
        subject: impl ToString,
        message: impl ToString,
        advice: impl ToString,
    ) -> Self {
        Self::new(Severity::Error, check, subject, message, advice)
    }

    fn new(
        severity: Severity,
        check: &'static str,
        subject: impl ToString,
        message: impl ToString,
        advice: impl ToString,
    ) -> Self {
        let (subject, message) = (subject.to_string(), message.to_string());
        Self { severity, check, subject, message, advice: advice.to_string() }
    }

    fn tree(&self) -> Value {
        Value::from([
            ("severity", self.severity.name()),
            ("check", self.check),
            ("subject", &self.subject),
            ("message", &self.message),
            ("advice", &self.advice),
        ])
    }
}

impl Doctor {
    /// Runs all checks and prints the findings.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Flags { output, serve } = *self.0;
        let config = serve.config()?;
        let holder = data::holder(&config);
        let mut findings = data::check(&config, holder);
        findings.extend(certificates::check(&config));
        findings.extend(network::check(&config, holder));
        findings.extend(system::check(&config));
        findings.extend(kubeconfig::check(&config));
        let worst = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok);
        print(&findings, worst, output)?;
        Ok(ExitCode::from(worst.exit_code()))
    }
}

fn print(findings: &[Finding], worst: Severity, output: Output) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if output == Output::Json {
        let list: Vec<Value> = findings.iter().map(Finding::tree).collect();
        let tree = Value::from([
            ("severity", Value::from(worst.name())),
            ("findings", Value::Array(list)),
        ]);
        let mut text = Vec::new();
        json::write_pretty(&tree, &mut text);
        text.push(b'\n');
        return out.write_all(&text);
    }
    for Finding { severity, check, subject, message, advice } in findings {
        write!(out, "{:<8} {check:<13} {subject}: {message}", severity.name())?;
        if !advice.is_empty() {
            write!(out, "; {advice}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
