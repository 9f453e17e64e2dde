//! The scenarios, and the requests of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};

use super::Campaign;
use super::kinds::{Kind, Written};
use super::mutants::{self, Graft};
use super::{histories, rights, versions};
use crate::Target;
use crate::http::Request;
use crate::request;
use crate::run::{self, Exchange, Histories};
use crate::schemas::Schemas;
use crate::script::{self, Row, Script};

/// Requests that belong together.
pub(super) struct Scenario {
    pub(super) name: String,
    /// Whether the scenario runs before the others and alone.
    pub(super) is_alone: bool,
    /// Whether the server itself never changes the objects, so that the responses are the same in
    /// every run.
    pub(super) is_steady: bool,
    asks: Asks,
    /// Values for all scenarios: certificates and the like.
    values: Arc<Row>,
}

/// The content of a scenario.
enum Asks {
    Script(Script),
    /// A script for one kind.
    Each(Script, Written),
    Mutants(Written),
    /// An object that is written in these versions.
    Versions(Written, Vec<String>),
    Updates(Written),
    Fields(Written, Vec<Graft>, u64),
    /// Access reviews, for a seed and a number.
    Rights(u64, u64),
    /// Watches over the writes of several writers, for a seed and a number.
    Histories(u64, u64),
}

impl Asks {
    /// The kind of the scenario, if it has one.
    const fn kind(&self) -> Option<&Written> {
        match self {
            Self::Each(_, kind)
            | Self::Mutants(kind)
            | Self::Versions(kind, _)
            | Self::Updates(kind)
            | Self::Fields(kind, ..) => Some(kind),
            Self::Script(_) | Self::Rights(..) | Self::Histories(..) => None,
        }
    }
}

/// The requests of a scenario in one run.
pub(super) enum Questions<'a> {
    Script { script: &'a Script, variables: Row, able: &'a [String] },
    Made { requests: Vec<(String, Request)>, settled: Value, variables: Row },
    Histories { histories: Histories, variables: Row },
}

impl Questions<'_> {
    /// Sends the requests to a server and returns its responses.
    pub(super) fn ask(&self, target: &Target) -> Vec<Exchange> {
        match self {
            Self::Script { script, variables, able } => {
                let target = able.iter().fold(target.clone(), |target, a| target.able(a));
                run::listen(script, &target, variables.clone())
            }
            Self::Made { requests, settled, variables } => {
                run::ask(requests, settled, target, variables.clone())
            }
            Self::Histories { histories, variables } => histories.listen(target, variables.clone()),
        }
    }
}

impl Scenario {
    /// The requests of a run, with a suffix and a number that no other run has.
    pub(super) fn questions(&self, unique: &str, number: usize) -> Result<Questions<'_>> {
        let mut variables = Row::clone(&self.values);
        variables.insert("unique".to_owned(), json!(unique));
        let net = format!("10.{}.{}", 100 + number / 250 % 100, number % 250);
        variables.insert("net".to_owned(), json!(net)); // for objects that are named after an address
        variables.insert("ns".to_owned(), json!(run::namespace(unique)));
        let kind = |row: &Written| Kind::new(row, &variables);
        let requests = match &self.asks {
            Asks::Script(script) => {
                return Ok(Questions::Script { script, variables, able: &[] });
            }
            Asks::Each(script, row) => {
                let of_kind = kind(row)?.variables();
                variables.extend(of_kind);
                return Ok(Questions::Script { script, variables, able: &row.able });
            }
            Asks::Histories(seed, world) => {
                let histories = histories::histories(*seed, *world, &run::namespace(unique));
                return Ok(Questions::Histories { histories, variables });
            }
            Asks::Mutants(row) => mutants::mutants(&kind(row)?),
            Asks::Updates(row) => mutants::updates(&kind(row)?),
            Asks::Versions(row, all) => versions::versions(&kind(row)?, all),
            Asks::Fields(row, grafts, seed) => mutants::fields(&kind(row)?, grafts, *seed),
            Asks::Rights(seed, world) => {
                rights::questions(*seed, *world, unique, &run::namespace(unique))
            }
        };
        let settled = match &self.asks {
            Asks::Updates(row) | Asks::Versions(row, _) => row.settled.clone(),
            _ => json!({}),
        };
        Ok(Questions::Made { requests, settled, variables })
    }
}

/// The scenarios of a campaign. The schemas are those that `target` publishes.
pub(super) fn load(campaign: &Campaign, target: &Target) -> Result<Vec<Scenario>> {
    let read = |name: &str| {
        let path = campaign.folder.join(name);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let kinds: Vec<Written> = serde_saphyr::from_str(&read("kinds.yaml")?)
        .map_err(|error| anyhow!("kinds.yaml: {error}"))?;
    let values: Row = serde_saphyr::from_str(&read("values.yaml")?)
        .map_err(|error| anyhow!("values.yaml: {error}"))?;
    let values = Arc::new(values);
    let mut scenarios = Vec::new();
    let mut add = |name: String, is_alone: bool, asks: Asks| {
        let is_steady = asks.kind().is_none_or(|kind| !kind.able.contains(&"settle".to_owned()));
        scenarios.push(Scenario { name, is_alone, is_steady, asks, values: values.clone() });
    };
    for script in script::load(&campaign.folder.join("scenarios"))? {
        add(script.script.clone(), script.alone, Asks::Script(script));
    }
    for script in script::load(&campaign.folder.join("each"))? {
        for kind in &kinds {
            let name = format!("{}: {}", script.script, kind.kind);
            add(name, false, Asks::Each(script.clone(), kind.clone()));
        }
    }
    let mut seen = BTreeSet::new();
    let mut documents = Documents { target, schemas: BTreeMap::new() };
    for kind in kinds {
        add(format!("mutants: {}", kind.kind), false, Asks::Mutants(kind.clone()));
        add(format!("updates: {}", kind.kind), false, Asks::Updates(kind.clone()));
        let all = documents.versions(&kind)?;
        if all.len() > 1 {
            add(format!("versions: {}", kind.kind), false, Asks::Versions(kind.clone(), all));
        }
        let grafts = documents.grafts(&kind.kind, &mut seen)?;
        add(format!("fields: {}", kind.kind), false, Asks::Fields(kind, grafts, campaign.seed));
    }
    for world in 1..=rights::WORLDS {
        let name = format!("random rights: {world}");
        add(name, false, Asks::Rights(campaign.seed, world));
    }
    for world in 1..=histories::WORLDS {
        let name = format!("histories: {world}");
        add(name, false, Asks::Histories(campaign.seed, world));
    }
    let wanted = |s: &Scenario| {
        campaign.only.is_empty() || campaign.only.iter().any(|word| s.name.contains(word.as_str()))
    };
    scenarios.retain(wanted);
    let one_in = campaign.one_in.max(1);
    let mut number = 0;
    scenarios.retain(|scenario| {
        number += usize::from(!matches!(scenario.asks, Asks::Script(_)));
        matches!(scenario.asks, Asks::Script(_)) || number % one_in == 0
    });
    Ok(scenarios)
}

/// The server's OpenAPI documents; each is read once.
struct Documents<'a> {
    target: &'a Target,
    schemas: BTreeMap<String, Schemas>,
}

impl Documents<'_> {
    fn read(&self, path: &str) -> Result<Value> {
        let request = request::read(self.target, path);
        let response = self.target.connect(false)?.exchange(&request)?;
        serde_json::from_slice(&response.body).with_context(|| path.to_owned())
    }

    /// The versions in which a kind is served; none for the core group, which has only one.
    fn versions(&self, kind: &Written) -> Result<Vec<String>> {
        let Some((group, _)) = kind.kind.split_once('/') else { return Ok(Vec::new()) };
        let group = self.read(&format!("/apis/{group}"))?;
        let mut versions = Vec::new();
        for version in group["versions"].as_array().into_iter().flatten() {
            let version = version["groupVersion"].as_str().unwrap_or_default();
            let list = self.read(&format!("/apis/{version}"))?;
            let mut resources = list["resources"].as_array().into_iter().flatten();
            if resources.any(|resource| resource["name"] == kind.plural.as_str()) {
                versions.push(version.to_owned());
            }
        }
        Ok(versions)
    }

    /// The grafts for objects of a kind, such as `apps/v1 Deployment`.
    fn grafts(&mut self, kind: &str, seen: &mut BTreeSet<String>) -> Result<Vec<Graft>> {
        let (version, name) = kind.split_once(' ').context("a kind is a version and a name")?;
        if !self.schemas.contains_key(version) {
            let base = if version.contains('/') { "apis" } else { "api" };
            let mut document = self.read(&format!("/openapi/v3/{base}/{version}"))?;
            self.schemas.insert(version.to_owned(), Schemas::new(&mut document));
        }
        let schemas = self.schemas.get(version).context("it was read")?;
        let schema =
            schemas.of_kind(version, name).with_context(|| format!("no schema of {kind}"))?;
        Ok(mutants::grafts(schemas, schema, seen))
    }
}
