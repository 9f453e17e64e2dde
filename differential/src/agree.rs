//! Compares one expression after another.

use std::collections::BTreeMap;

use regex::Regex;

use crate::evaluators::{Evaluator, Pintle};
use crate::known::KNOWN;
use crate::make::Made;
use crate::plain::{Outcome, Plain};

/// What was found so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Expressions and parts of them that both did alike.
    pub alike: usize,
    /// How often each known departure was met, by its place.
    pub known: BTreeMap<usize, usize>,
    /// How many were not compared, for their types don't fit.
    pub refused: usize,
    /// What differs for no known reason.
    pub unknown: Vec<String>,
}

/// Compares this project with another.
pub struct Judge<E> {
    ours: Pintle,
    other: E,
    known: Vec<(usize, Regex)>,
    pub tally: Tally,
}

/// Of a part that differs, nothing more can be said of what it is in.
struct Lost;

impl<E: Evaluator> Judge<E> {
    pub fn new(other: E) -> Self {
        let own = KNOWN.iter().enumerate().filter(|(_, known)| known.of == other.name());
        let known =
            own.map(|(at, known)| (at, Regex::new(known.shows).expect("a pattern"))).collect();
        Self { ours: Pintle::default(), other, known, tally: Tally::default() }
    }

    /// Compares an expression; if it differs, its parts.
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

    /// The first of the known departures that an expression shows, if both do it differently.
    pub fn shown_by(&self, text: &str) -> Option<usize> {
        let (ours, others) = (self.ours.evaluate(text), self.other.evaluate(text));
        if ours.is(&others) { None } else { self.known(&shown(text, &ours, &others)) }
    }

    fn known(&self, shown: &str) -> Option<usize> {
        self.known.iter().find(|(_, pattern)| pattern.is_match(shown)).map(|(at, _)| *at)
    }

    /// The expression's text with each part that is known to differ replaced by its value.
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
