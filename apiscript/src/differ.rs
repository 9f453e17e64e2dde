//! Sends the same requests to two servers and reports where the responses differ.
//!
//! Requests come from three sources: scripts without expectations (`differ/scenarios`), scripts
//! that run for each kind (`differ/each`), and generators that vary the kinds' objects and schemas
//! (`mutants`), write and read a kind in all its versions (`versions`), create roles and review
//! access (`rights`), or run several writers followed by watches (`histories`). Each scenario has
//! its own namespace, with the same name on both servers, and names with the same suffix, so
//! responses can be compared directly except for values that servers choose (`alike`).
//!
//! Without a reference the responses are compared with recorded verdicts.

mod alike;
mod compare;
mod histories;
mod kinds;
mod known;
mod mutants;
mod rights;
mod scenario;
mod summary;
mod verdicts;
mod versions;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::Target;
use crate::run::Exchange;
pub use compare::{Class, Difference};
use known::Known;
use scenario::Scenario;
pub use summary::Summary;
use verdicts::Recorded;

/// The requests to send.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The folder with kinds, scenarios, known differences and verdicts.
    pub folder: PathBuf,
    /// Only scenarios with one of these words in their names; empty means all.
    pub only: Vec<String>,
    /// The seed of random requests.
    pub seed: u64,
    /// Runs one in so many of the generated scenarios.
    pub one_in: usize,
    /// The number of scenarios that run at once.
    pub jobs: usize,
    /// Records the verdicts that are equal, or whose difference is known.
    pub record: bool,
}

/// A request with different responses.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The scenario.
    pub scenario: String,
    /// The request.
    pub question: String,
    /// The differences.
    pub differences: Vec<Difference>,
    /// For each difference, the number of the known difference that matches it, if there is one.
    known: Vec<Option<usize>>,
}

impl Finding {
    /// Whether there is a difference that is not known.
    pub fn is_new(&self) -> bool {
        self.known.contains(&None)
    }

    /// The finding in JSON.
    pub fn to_json(&self) -> String {
        let differences: Vec<Value> = self
            .differences
            .iter()
            .zip(&self.known)
            .map(|(Difference { class, path, reference, ours }, known)| {
                let class = class.to_string();
                json!({"class": class, "path": path, "reference": reference, "ours": ours, "known": known})
            })
            .collect();
        let (scenario, question) = (&self.scenario, &self.question);
        json!({"scenario": scenario, "question": question, "differences": differences}).to_string()
    }

    /// The gravest class of the differences that are not known.
    pub fn class(&self) -> Option<Class> {
        let new = self.differences.iter().zip(&self.known).filter(|(_, known)| known.is_none());
        new.map(|(difference, _)| difference.class).min()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LIMIT: usize = 8;
        write!(f, "[{}] {}", self.scenario, self.question)?;
        for Difference { class, path, reference, ours } in self.differences.iter().take(LIMIT) {
            let (reference, ours) =
                (summary::shown(reference, ours), summary::shown(ours, reference));
            write!(f, "\n  {class}: {path}\n    reference {reference}\n    ours      {ours}")?;
        }
        match self.differences.len() {
            count if count > LIMIT => write!(f, "\n  and {} more", count - LIMIT),
            _ => Ok(()),
        }
    }
}

/// Sends the requests to a server, and compares its responses with those of the reference, or with
/// recorded verdicts if there is no reference. Calls `each` for every response with a new
/// difference.
pub fn run(
    target: &Target,
    reference: Option<&Target>,
    campaign: &Campaign,
    each: &(dyn Fn(&Finding) + Sync),
) -> Result<Summary> {
    let known = Known::load(&campaign.folder.join("known.yaml"))?;
    let file = campaign.folder.join("verdicts.yaml");
    let recorded = if reference.is_none() { verdicts::load(&file)? } else { Vec::new() };
    let scenarios = scenario::load(campaign, reference.unwrap_or(target))?;
    let run = Run { target, reference, campaign, known: &known, recorded: &recorded, each };
    let (alone, together): (Vec<_>, Vec<_>) = scenarios.iter().partition(|s| s.is_alone);
    let mut results = run.some(&alone, 1)?;
    results.extend(run.some(&together, campaign.jobs.max(1))?);
    let mut summary = Summary::new(known.reasons());
    for result in &results {
        summary.add(result.questions, result.compared, &result.findings);
    }
    if campaign.record {
        // Verdicts of scenarios that did not run stay in the file.
        let mut there = if file.exists() { verdicts::load(&file)? } else { Vec::new() };
        there
            .retain(|recorded| scenarios.iter().all(|scenario| scenario.name != recorded.scenario));
        let new = results.into_iter().filter_map(|result| result.recorded);
        let by_name = |recorded: Recorded| (recorded.scenario.clone(), recorded);
        let verdicts_by_name: BTreeMap<String, Recorded> =
            there.into_iter().chain(new).map(by_name).collect();
        verdicts::save(&file, verdicts_by_name.values())?;
    }
    Ok(summary)
}

struct Run<'a> {
    target: &'a Target,
    reference: Option<&'a Target>,
    campaign: &'a Campaign,
    known: &'a Known,
    recorded: &'a [Recorded],
    each: &'a (dyn Fn(&Finding) + Sync),
}

/// The result of a scenario.
struct Outcome {
    questions: usize,
    compared: usize,
    findings: Vec<Finding>,
    recorded: Option<Recorded>,
}

impl Run<'_> {
    fn some(&self, of: &[&Scenario], jobs: usize) -> Result<Vec<Outcome>> {
        let next = AtomicUsize::new(0);
        let outcomes = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                while let Some(scenario) = of.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = self.scenario(scenario).with_context(|| scenario.name.clone())?;
                    outcomes.lock().push(outcome);
                }
                Ok(())
            };
            let hands: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            let joined =
                hands.into_iter().map(|hand| hand.join().map_err(|_| anyhow!("a panic"))?);
            joined.collect::<Result<Vec<()>>>()
        })?;
        Ok(outcomes.into_inner())
    }

    fn scenario(&self, scenario: &Scenario) -> Result<Outcome> {
        let name = &scenario.name;
        let (unique, number) = unique();
        let questions = scenario.questions(&unique, number)?;
        let (ours, reference) = std::thread::scope(|scope| {
            let reference = self.reference.map(|target| scope.spawn(|| questions.ask(target)));
            let ours = questions.ask(self.target);
            let reference = reference.map(|hand| hand.join().map_err(|_| anyhow!("a panic")));
            Ok::<_, anyhow::Error>((ours, reference.transpose()?))
        })?;
        let recorded = self.recorded.iter().find(|recorded| recorded.scenario == *name);
        let (compared, different) = match (&reference, recorded) {
            (Some(reference), _) => (ours.len(), compared(reference, &ours)),
            (None, Some(recorded)) => {
                let found = verdicts::replay(recorded, &unique, &ours);
                let found = found.into_iter().map(|(number, found)| (number, vec![found]));
                (recorded.count(), found.collect())
            }
            (None, None) => (0, Vec::new()),
        };
        let mut findings = Vec::new();
        let mut is_open = vec![false; ours.len()];
        for (number, differences) in different {
            let question = ours.get(number).map_or("", |exchange| &exchange.question);
            let question = question.replace(&unique, "$unique");
            let row = |found| self.known.row(name, &question, found);
            let known = differences.iter().map(row).collect();
            let finding = Finding { scenario: name.clone(), question, differences, known };
            if finding.is_new() {
                (self.each)(&finding);
                is_open.get_mut(number).map(|open| *open = true).unwrap_or_default();
            }
            findings.push(finding);
        }
        let keep = || verdicts::record(name, &unique, &ours, &is_open);
        let recorded = (self.campaign.record && scenario.is_steady).then(keep);
        Ok(Outcome { questions: ours.len(), compared, findings, recorded })
    }
}

/// The differences between the responses to the same requests, by the request's number.
fn compared(reference: &[Exchange], ours: &[Exchange]) -> Vec<(usize, Vec<Difference>)> {
    let mut found = Vec::new();
    for (number, (theirs, our)) in reference.iter().zip(ours).enumerate() {
        let differences = compare::answers(&our.question, &theirs.answer, &our.answer);
        if !differences.is_empty() {
            found.push((number, differences));
        }
    }
    found
}

/// A suffix and a number that no other scenario has. The suffix has letters and digits only,
/// because names of all kinds contain it.
fn unique() -> (String, usize) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, count) = (now.as_secs() & 0xf_ffff, COUNT.fetch_add(1, Ordering::Relaxed));
    (format!("d{seconds:05x}x{count:03x}"), count)
}
