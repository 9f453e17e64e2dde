//! Verdicts: short forms of kube-apiserver's responses. They detect a changed response of Pintle
//! without a running kube-apiserver.
//!
//! A verdict is the status, the reason and the fields of the causes. The file groups requests by
//! verdict. It has numbers instead of requests, to stay small. A checksum of all requests detects
//! a changed numbering. The file omits requests with an unintended difference.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;

use super::alike;
use super::compare::{Class, Difference};
use crate::answer::Answer;
use crate::run::Exchange;

/// The verdicts of a scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recorded {
    pub(super) scenario: String,
    /// The checksum of the requests.
    pub(super) questions: String,
    /// The verdicts, with the numbers of their requests: `0-3 7`.
    pub(super) verdicts: BTreeMap<String, String>,
}

impl Recorded {
    /// The number of verdicts.
    pub(super) fn count(&self) -> usize {
        self.verdicts.values().map(|numbers| numbers_of(numbers).count()).sum()
    }
}

/// The verdict of a response to a request about a path.
pub(super) fn of(question: &str, answer: &Answer) -> String {
    let body = answer.body();
    let mut verdict = answer.status().to_string();
    if answer.status() < 400 {
        match body["status"]["allowed"].as_bool() {
            Some(true) => verdict.push_str(" allowed"),
            Some(false) => verdict.push_str(" not allowed"),
            None => {}
        }
        return verdict;
    }
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let _ = write!(verdict, " {}", text(&body["reason"])); // a string accepts every write
    let causes = body["details"]["causes"].as_array().into_iter().flatten();
    let mut fields: Vec<String> = causes.map(|cause| text(&cause["field"])).collect();
    fields.sort_unstable();
    // Most causes have the path that the request is about.
    let path = question.split(' ').nth(1).unwrap_or_default();
    for field in fields {
        let field = match field.strip_prefix(path) {
            Some(rest) if !path.is_empty() => format!("@{rest}"),
            _ => field,
        };
        let _ = write!(verdict, " {field}"); // a string accepts every write
    }
    verdict
}

/// A checksum (FNV-1a) of requests, without the names of the run.
pub(super) fn sum(exchanges: &[Exchange], unique: &str) -> String {
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    for exchange in exchanges {
        let question = alike::normal(&constant(&exchange.question).replace(unique, ""));
        for byte in question.bytes().chain([b'\n']) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{} {sum:016x}", exchanges.len())
}

/// The part of a request's name that is the same in every run: for a script its method and path,
/// because the rest may come from an earlier response.
fn constant(question: &str) -> String {
    let mut words = question.split([' ', '?']);
    match (words.next(), words.next()) {
        (Some(method), Some(path)) if path.starts_with('/') => format!("{method} {path}"),
        _ => question.to_owned(),
    }
}

/// The verdicts to record: those on which both servers agree, or from which Pintle differs on
/// purpose.
pub(super) fn record(
    scenario: &str,
    unique: &str,
    exchanges: &[Exchange],
    is_open: &[bool],
) -> Recorded {
    let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, (exchange, is_open)) in exchanges.iter().zip(is_open).enumerate() {
        if let (Ok(answer), false) = (&exchange.answer, is_open) {
            let verdict = of(&exchange.question, answer).replace(unique, "");
            numbers.entry(verdict).or_default().push(number);
        }
    }
    let verdicts = numbers.into_iter().map(|(verdict, numbers)| (verdict, ranges(&numbers)));
    Recorded {
        scenario: scenario.to_owned(),
        questions: sum(exchanges, unique),
        verdicts: verdicts.collect(),
    }
}

/// Compares responses with the recorded verdicts.
pub(super) fn replay(
    recorded: &Recorded,
    unique: &str,
    exchanges: &[Exchange],
) -> Vec<(usize, Difference)> {
    let mut found = Vec::new();
    let mut differs = |number, class, reference: &str, ours: String| {
        let path = "verdict".to_owned();
        found.push((number, Difference { class, path, reference: reference.to_owned(), ours }));
    };
    let sum = sum(exchanges, unique);
    if sum != recorded.questions {
        differs(0, Class::Lost, &recorded.questions, format!("{sum}: record the verdicts again"));
        return found;
    }
    for (verdict, numbers) in &recorded.verdicts {
        for number in numbers_of(numbers) {
            let Some(exchange) = exchanges.get(number) else { continue };
            match &exchange.answer {
                Ok(answer) => {
                    let ours = of(&exchange.question, answer).replace(unique, "");
                    if ours != *verdict {
                        let same = ours.split(' ').next() == verdict.split(' ').next();
                        let class = if same { Class::Causes } else { Class::Status };
                        differs(number, class, verdict, ours);
                    }
                }
                Err(error) => differs(number, Class::Lost, verdict, error.clone()),
            }
        }
    }
    found
}

pub(super) fn load(path: &Path) -> Result<Vec<Recorded>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).map_err(|error| anyhow!("{}: {error}", path.display()))
}

pub(super) fn save<'a>(
    path: &Path,
    recorded: impl IntoIterator<Item = &'a Recorded>,
) -> Result<()> {
    let mut text =
        String::from("# What kube-apiserver answers, recorded by `apiscript differ --record`.\n");
    for Recorded { scenario, questions, verdicts } in recorded {
        writeln!(text, "- scenario: {scenario:?}\n  questions: {questions}\n  verdicts:")?;
        for (verdict, numbers) in verdicts {
            writeln!(text, "    {verdict:?}: {numbers:?}")?;
        }
        if verdicts.is_empty() {
            text.truncate(text.len() - 1);
            text.push_str(" {}\n");
        }
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// Formats numbers as ranges: `0-3 7`.
fn ranges(numbers: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let length = rest.iter().zip(*first..).take_while(|(a, b)| *a == b).count();
        let last = first + length - 1;
        let space = if text.is_empty() { "" } else { " " };
        text.push_str(&match length {
            1 => format!("{space}{first}"),
            _ => format!("{space}{first}-{last}"),
        });
        rest = &rest[length..];
    }
    text
}

fn numbers_of(ranges: &str) -> impl Iterator<Item = usize> {
    ranges.split(' ').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => first..last + 1,
            _ => 0..0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_ranges() {
        for numbers in [&[][..], &[0], &[0, 1, 2], &[0, 2, 3, 9]] {
            assert_eq!(numbers_of(&ranges(numbers)).collect::<Vec<_>>(), numbers);
        }
        assert_eq!(ranges(&[0, 1, 2, 7]), "0-2 7");
    }
}
