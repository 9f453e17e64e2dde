//! `--config`: flags from a YAML file.
//!
//! The keys are the names of the flags. A value has the type of its flag: a boolean, a number, or a
//! string; a flag that may be repeated also takes a list. The values become arguments of the
//! command line, so they are validated like all arguments. A flag on the command line replaces the
//! file's.

use std::any::TypeId;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use pintle_value::{Value, json, yaml};

/// The flag that names the file, which the file cannot set.
const FLAG: &str = "config";
/// The maximum length of the file.
const BYTES_MAX: u64 = 1 << 20;

/// The flags of a file.
#[derive(Debug)]
pub(crate) struct FlagFile {
    path: PathBuf,
    flags: Vec<FileFlag>,
}

/// A flag of the file that the command line does not set.
#[derive(Debug)]
struct FileFlag {
    name: String,
    line: u32,
    arguments: Vec<OsString>,
}

impl FlagFile {
    /// Reads the file that `--config` names; `None` without that flag. `matches` and `command` are
    /// those of the subcommand.
    pub(crate) fn read(command: &Command, matches: &ArgMatches) -> Result<Option<Self>> {
        let path = matches.try_get_one::<PathBuf>(FLAG).ok().flatten();
        let Some(path) = path.cloned() else { return Ok(None) };
        let shown = format!("--{FLAG}: {}", path.display());
        let mut bytes = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
        read.with_context(|| shown.clone())?;
        ensure!(bytes.len() as u64 <= BYTES_MAX, "{shown}: the file is larger than 1 MiB");
        let flags = flags(command, matches, &bytes).context(shown)?;
        Ok(Some(Self { path, flags }))
    }

    /// The arguments that stand for the file's flags.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = OsString> {
        self.flags.iter().flat_map(|flag| flag.arguments.iter().cloned())
    }

    /// Adds the file and the line to an error of the command line about one of the file's flags.
    pub(crate) fn locate_usage(&self, error: clap::Error) -> anyhow::Error {
        let named = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(argument)) => vec![argument.clone()],
            Some(ContextValue::Strings(arguments)) => arguments.clone(),
            _ => Vec::new(),
        };
        match named.iter().find_map(|argument| self.origin(argument)) {
            Some(origin) => {
                let text = error.to_string();
                let reason = text.lines().next().unwrap_or_default();
                anyhow!("{origin}: {}", reason.strip_prefix("error: ").unwrap_or(reason))
            }
            None => error.into(),
        }
    }

    /// Adds the file and the line to an error that begins with the name of one of the file's flags.
    pub(crate) fn locate(&self, error: anyhow::Error) -> anyhow::Error {
        match self.origin(&format!("{error:#}")) {
            Some(origin) => error.context(origin),
            None => error,
        }
    }

    /// The file and the line of the flag with whose name a text begins.
    fn origin(&self, text: &str) -> Option<String> {
        let name = text.strip_prefix("--")?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let name = name.split(|c| !is_part(c)).next()?;
        let FileFlag { line, .. } = self.flags.iter().find(|flag| flag.name == name)?;
        Some(format!("--{FLAG}: {}: line {line}", self.path.display()))
    }
}

/// Parses the file to the flags that the command line does not set.
fn flags(command: &Command, matches: &ArgMatches, bytes: &[u8]) -> Result<Vec<FileFlag>> {
    let (tree, lines) = yaml::parse_strict_with_lines(bytes)?;
    let entries = match &tree {
        Value::Null => return Ok(Vec::new()),
        Value::Object(entries) => entries,
        _ => bail!("line 1: the file must be a map of flags to their values"),
    };
    let mut flags = Vec::new();
    for (name, value) in entries.iter() {
        let line = lines.iter().find(|(key, _)| key == name.as_str()).map_or(1, |(_, line)| *line);
        let at = || format!("line {line}: {name}");
        let flag = command.get_arguments().find(|flag| flag.get_long() == Some(name.as_str()));
        let flag = flag.filter(|flag| !matches!(flag.get_id().as_str(), FLAG | "help"));
        let flag = flag
            .ok_or_else(|| {
                anyhow!(
                    "unknown key; the keys are the flags of `pintle {}`, without --",
                    command.get_name()
                )
            })
            .with_context(at)?;
        let arguments = arguments(flag, value).with_context(at)?;
        if matches.value_source(flag.get_id().as_str()) != Some(ValueSource::CommandLine) {
            flags.push(FileFlag { name: name.as_str().to_owned(), line, arguments });
        }
    }
    Ok(flags)
}

/// The arguments for a flag's value.
fn arguments(flag: &Arg, value: &Value) -> Result<Vec<OsString>> {
    let name = flag.get_long().unwrap_or_default();
    let kind = Kind::of(flag);
    let items = match value {
        Value::Array(items) if matches!(flag.get_action(), ArgAction::Append) => items.as_slice(),
        Value::Array(_) => bail!("must be {}, not a list", kind.noun()),
        item => std::slice::from_ref(item),
    };
    let texts = items.iter().map(|item| kind.text(item)).collect::<Result<Vec<_>>>()?;
    Ok(match flag.get_action() {
        ArgAction::SetTrue if texts == ["true"] => vec![format!("--{name}").into()],
        ArgAction::SetTrue => Vec::new(),
        _ => texts.into_iter().map(|text| format!("--{name}={text}").into()).collect(),
    })
}

/// The type of a flag's values in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Boolean,
    Number,
    Text,
}

impl Kind {
    fn of(flag: &Arg) -> Self {
        let parser = flag.get_value_parser();
        let is_boolean = matches!(flag.get_action(), ArgAction::SetTrue)
            || flag.get_possible_values().iter().any(|value| value.get_name() == "true");
        let numbers = [
            TypeId::of::<u8>(),
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
            TypeId::of::<i32>(),
            TypeId::of::<i64>(),
            TypeId::of::<f32>(),
            TypeId::of::<f64>(),
        ];
        if is_boolean {
            Self::Boolean
        } else if numbers.iter().any(|number| parser.type_id() == *number) {
            Self::Number
        } else {
            Self::Text
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Boolean => "true or false",
            Self::Number => "a number",
            Self::Text => "a string",
        }
    }

    /// The text of a value of this type. A number for a string is refused, because its text would
    /// not be that of the file: 1.30 would become 1.3.
    fn text(self, value: &Value) -> Result<String> {
        match (self, value) {
            (Self::Boolean, Value::Bool(value)) => Ok(value.to_string()),
            (Self::Number, Value::Int(_) | Value::Float(_)) => Ok(json::to_string(value)),
            (Self::Text, Value::String(text)) => Ok(text.as_str().to_owned()),
            (Self::Text, Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
                bail!("must be a string: write it in quotes")
            }
            (_, Value::Null) => bail!("must be {}: it has no value", self.noun()),
            (_, Value::Object(_)) => bail!("must be {}, not a map", self.noun()),
            (_, Value::Array(_)) => bail!("must be {}, not a list", self.noun()),
            _ => bail!("must be {}", self.noun()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;
    use crate::flags::Serve;

    #[test]
    fn every_flag_of_serve_has_a_type_in_the_file() {
        let mut serve = Serve::augment_args(Command::new("serve"));
        serve.build();
        let kind = |name: &str| {
            let flag = serve.get_arguments().find(|flag| flag.get_long() == Some(name));
            Kind::of(flag.expect(name))
        };
        assert_eq!(kind("show-hidden-metrics-for-version"), Kind::Text);
        assert_eq!(kind("bind-address"), Kind::Text);
        assert_eq!(kind("emulation-forward-compatible"), Kind::Boolean);
        assert_eq!(kind("min-request-timeout"), Kind::Number);
        assert_eq!(kind("audit-log-maxage"), Kind::Number);
    }
}
