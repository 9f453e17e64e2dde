//! The YAML form of scripts.
//!
//! A file is a list of scripts; a script is a list of steps that share variables and run in order.
//! scripts/README.md explains the words; unknown words are refused. This module knows no requests
//! and no servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

/// A set of variables, by name.
pub type Row = BTreeMap<String, Value>;

/// One script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The behaviour that it shows, as a sentence.
    pub script: String,
    /// The requirements that it checks as a whole.
    #[serde(default)]
    pub ids: Vec<String>,
    /// Abilities that the target must have; otherwise the script is skipped.
    #[serde(default)]
    pub requires: Vec<String>,
    /// Whether it runs alone, because its steps affect other scripts: after the others, or before
    /// them in a comparison of servers.
    #[serde(default)]
    pub alone: bool,
    /// The requests.
    pub steps: Vec<Spanned<Step>>,
    /// Paths to delete at the end, whatever happened.
    #[serde(default)]
    pub cleanup: Vec<String>,
    /// Its file.
    #[serde(skip)]
    pub file: PathBuf,
}

/// A step: a request with its expected response, an operation of a watch, or a group of steps.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Step {
    /// The requirements that this step checks.
    pub ids: Vec<String>,
    /// Abilities that the target must have; otherwise the step is skipped.
    pub requires: Vec<String>,

    /// The path of a GET.
    #[serde(rename = "GET")]
    pub get: Option<String>,
    /// The path of a POST.
    #[serde(rename = "POST")]
    pub post: Option<String>,
    /// The path of a PUT.
    #[serde(rename = "PUT")]
    pub put: Option<String>,
    /// The path of a PATCH.
    #[serde(rename = "PATCH")]
    pub patch: Option<String>,
    /// The path of a DELETE.
    #[serde(rename = "DELETE")]
    pub delete: Option<String>,
    /// The path of a HEAD.
    #[serde(rename = "HEAD")]
    pub head: Option<String>,
    /// The path of an OPTIONS.
    #[serde(rename = "OPTIONS")]
    pub options: Option<String>,

    /// Query parameters, percent-encoded and added to the path.
    pub query: Row,
    /// Request headers.
    pub headers: Row,
    /// The content type: a word of `MEDIA_TYPES`, a whole type, or `none`.
    #[serde(rename = "type")]
    pub content_type: Option<String>,
    /// The `Accept` header: a word of `MEDIA_TYPES` or a whole value.
    pub accept: Option<String>,
    /// Whether to send no credentials.
    pub anonymous: bool,
    /// The impersonated user: a name, or `{user, groups, uid, extra}`.
    #[serde(rename = "as", deserialize_with = "present")]
    pub acts_as: Option<Value>,
    /// A bearer token, instead of the runner's credentials.
    pub token: Option<String>,
    /// The body, sent as JSON unless `type` says Protobuf or CBOR.
    #[serde(deserialize_with = "present")]
    pub send: Option<Value>,
    /// A merge patch that is applied to `send`.
    pub but: Option<Value>,
    /// The body, sent as it is.
    pub raw: Option<String>,
    /// The body: a text that is repeated between a prefix and a suffix.
    pub filler: Option<Filler>,

    /// The expected status: a number, a list of them, or in a race the number of each.
    #[serde(deserialize_with = "present")]
    pub status: Option<Value>,
    /// Expected response headers.
    pub response_headers: Row,
    /// The expected body; it may have more members.
    #[serde(deserialize_with = "present")]
    pub body: Option<Value>,
    /// The exact expected body.
    #[serde(deserialize_with = "present")]
    pub exact: Option<Value>,
    /// The expected body as text.
    #[serde(deserialize_with = "present")]
    pub text: Option<Value>,
    /// Variables to save: name, and path in the body or `header Name`.
    pub save: BTreeMap<String, String>,

    /// Retry until the response is as expected, for this long on an idle machine (`10s`).
    pub within: Option<String>,
    /// Repeat the step this many times, `$i` counting from 1.
    pub times: Option<usize>,
    /// Run the step once for each of these sets of variables.
    pub rows: Vec<Row>,
    /// Send this many requests at once, `$i` counting from 1.
    pub race: Option<usize>,
    /// Steps of a group.
    pub steps: Vec<Spanned<Step>>,

    /// The response is a stream, whose first events are the body: at most so many, fewer if it
    /// ends, if the initial events end, or if it is silent.
    pub take: Option<usize>,

    /// Opens a watch with this name, by the step's GET.
    pub watch: Option<String>,
    /// The watch whose next events are compared with `next`.
    pub events: Option<String>,
    /// The expected events. Each has one member: the event's type, with the event's object.
    pub next: Vec<BTreeMap<String, Value>>,
    /// Event types to skip.
    pub ignore: Vec<String>,
    /// Whether `next` may come in any order.
    pub unordered: bool,
    /// The watch that the server must end now.
    pub end: Option<String>,
    /// The watch to close.
    pub close: Option<String>,
    /// Makes the server compact its history, if the target can.
    pub compact: bool,
}

/// A large body in short form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filler {
    /// The prefix.
    #[serde(default)]
    pub before: String,
    /// The repeated text.
    pub unit: String,
    /// The number of repetitions.
    pub times: usize,
    /// The suffix.
    #[serde(default)]
    pub after: String,
}

impl Step {
    /// Whether the runner's own credentials are not used.
    pub fn is_a_stranger(&self) -> bool {
        self.anonymous || self.token.is_some()
    }

    /// The method and path, if the step sends a request.
    pub fn request(&self) -> Option<(&'static str, &str)> {
        let all = [
            ("GET", &self.get),
            ("POST", &self.post),
            ("PUT", &self.put),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
            ("HEAD", &self.head),
            ("OPTIONS", &self.options),
        ];
        all.into_iter().find_map(|(method, path)| path.as_deref().map(|path| (method, path)))
    }

    /// Checks rules that the types cannot express, such as that a step does exactly one thing.
    fn check(&self) -> Result<()> {
        let requests = [
            &self.get,
            &self.post,
            &self.put,
            &self.patch,
            &self.delete,
            &self.head,
            &self.options,
        ];
        let actions = requests.iter().filter(|path| path.is_some()).count()
            + usize::from(self.events.is_some())
            + usize::from(self.end.is_some())
            + usize::from(self.close.is_some())
            + usize::from(self.compact)
            + usize::from(!self.steps.is_empty());
        if actions != 1 {
            bail!("a step does one thing, not {actions}");
        }
        if self.watch.is_some() && self.get.is_none() {
            bail!("a watch is a GET");
        }
        if self.next.iter().any(|event| event.len() != 1) {
            bail!("an event is one type with its object");
        }
        if [self.send.is_some(), self.raw.is_some(), self.filler.is_some()]
            .iter()
            .filter(|b| **b)
            .count()
            > 1
        {
            bail!("a request has one body");
        }
        if self.patch.is_some() && self.content_type.is_none() {
            bail!("a PATCH needs a type");
        }
        self.steps.iter().try_for_each(|step| step.value.check().with_context(|| at(step)))
    }

    /// All requirement ids that the step and its own steps check.
    fn ids(&self) -> Vec<&str> {
        let own = self.ids.iter().map(String::as_str);
        own.chain(self.steps.iter().flat_map(|step| step.value.ids())).collect()
    }
}

impl Script {
    /// All requirement ids that the script checks.
    pub fn all_ids(&self) -> Vec<&str> {
        let own = self.ids.iter().map(String::as_str);
        own.chain(self.steps.iter().flat_map(|step| step.value.ids())).collect()
    }
}

/// `line 12`, for errors.
fn at(step: &Spanned<Step>) -> String {
    format!("line {}", step.referenced.line())
}

/// Distinguishes an explicit `null` from an absent member.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Parses the scripts of one file.
pub fn parse(text: &str, file: &Path) -> Result<Vec<Script>> {
    let options = serde_saphyr::options! { strict_booleans: true };
    let mut scripts: Vec<Script> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| anyhow!("{}: {error}", file.display()))?;
    for script in &mut scripts {
        file.clone_into(&mut script.file);
        for step in &script.steps {
            step.value.check().with_context(|| format!("{}, {}", file.display(), at(step)))?;
        }
    }
    Ok(scripts)
}

/// Parses a file, or every `.yaml` file below a folder, in order of their names.
pub fn load(path: &Path) -> Result<Vec<Script>> {
    if !path.is_dir() {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        return parse(&text, path);
    }
    let mut entries = std::fs::read_dir(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("reading {}", path.display()))?;
    entries.sort_by_key(std::fs::DirEntry::path);
    let mut scripts = Vec::new();
    for entry in entries {
        let path = entry.path();
        if path.is_dir() || path.extension().is_some_and(|end| end == "yaml") {
            scripts.extend(load(&path)?);
        }
    }
    Ok(scripts)
}
