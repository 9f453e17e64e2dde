//! Compares Pintle's results with those of another implementation.

use std::collections::BTreeMap;

use regex::Regex;

use crate::evaluators::{Evaluator, Pintle};
use crate::known::KNOWN;
use crate::make::Made;
use crate::plain::{Outcome, Plain};

/// The results so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of expressions, and of their parts, with equal results.
    pub alike: usize,
    /// The number of occurrences of each known deviation, by its index.
    pub known: BTreeMap<usize, usize>,
    /// The number of expressions that do not type-check.
    pub refused: usize,
    /// Differences that match no known deviation.
    pub unknown: Vec<String>,
}

/// Compares Pintle with another implementation.
pub struct Judge<E> {
    ours: Pintle,
    other: E,
    known: Vec<(usize, Regex)>,
    pub tally: Tally,
}

/// A part differs and has no literal to replace it, so the expression around it cannot be
/// compared.
struct Lost;

impl<E: Evaluator> Judge<E> {
    pub fn new(other: E) -> Self {
        let own = KNOWN.iter().enumerate().filter(|(_, known)| known.of == other.name());
        let known =
            own.map(|(at, known)| (at, Regex::new(known.shows).expect("a pattern"))).collect();
        Self { ours: Pintle::default(), other, known, tally: Tally::default() }
    }

    /// Compares an expression; if the results differ, compares its parts.
    pub fn judge(&mut self, made: &Made) {
        let text = made.text();
        let ours = self.ours.evaluate(&text);
        if matches!(ours, Outcome::Refused) {
            self.tally.refused += 1;
        } else if ours.is(&self.other.evaluate(&text)) {
            self.tally.alike += 1;
        } else {
            let _ = self.settle(made);
        }
    }

    /// Returns the first known deviation that an expression shows, if the results differ.
    pub fn shown_by(&self, text: &str) -> Option<usize> {
        let (ours, others) = (self.ours.evaluate(text), self.other.evaluate(text));
        if ours.is(&others) { None } else { self.known(&shown(text, &ours, &others)) }
    }

    fn known(&self, shown: &str) -> Option<usize> {
        self.known.iter().find(|(_, pattern)| pattern.is_match(shown)).map(|(at, _)| *at)
    }

    /// Counts or reports each difference of the expression and of its parts. Returns the
    /// expression's text, or Pintle's value if the results differ.
    fn settle(&mut self, made: &Made) -> Result<String, Lost> {
        let mut lost = false;
        let text = made.text_with(&mut |part| {
            self.settle(part).unwrap_or_else(|Lost| {
                lost = true;
                String::new()
            })
        });
        if lost {
            return Err(Lost);
        }
        if made.is_open {
            return Ok(text);
        }
        let (ours, others) = (self.ours.evaluate(&text), self.other.evaluate(&text));
        if matches!(ours, Outcome::Refused) {
            return Err(Lost);
        }
        if ours.is(&others) {
            self.tally.alike += 1;
            return Ok(text);
        }
        let shown = shown(&text, &ours, &others);
        match self.known(&shown) {
            Some(at) => *self.tally.known.entry(at).or_default() += 1,
            None => self.tally.unknown.push(shown),
        }
        let literal = match &ours {
            Outcome::Value(value) => value.literal(&made.t),
            _ => None,
        };
        literal.ok_or(Lost)
    }
}

fn shown(text: &str, ours: &Outcome, others: &Outcome) -> String {
    format!("{text} => {}, not {}", show(others), show(ours))
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Value(Plain::Other(what)) => what.clone(),
        Outcome::Value(value) => value.to_string(),
        Outcome::Error(why) => format!("error: {why}"),
        Outcome::Refused => "refused".to_owned(),
    }
}
