//! The result of a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Class, Finding};

/// How many requests were sent, and how many responses differed.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The number of requests.
    pub questions: usize,
    /// The number of responses that were compared with the reference's, or with recorded ones.
    pub compared: usize,
    /// The number of responses with a new difference, by the gravest class.
    pub new: BTreeMap<Class, usize>,
    /// The reasons of known differences, with the number of responses.
    pub known: Vec<(String, usize)>,
}

impl Summary {
    pub(super) fn new<'a>(reasons: impl Iterator<Item = &'a str>) -> Self {
        let known = reasons.map(|reason| (reason.to_owned(), 0)).collect();
        Self { known, ..Self::default() }
    }

    pub(super) fn add(&mut self, questions: usize, compared: usize, findings: &[Finding]) {
        self.questions += questions;
        self.compared += compared;
        for finding in findings {
            if let (true, Some(class)) = (finding.is_new(), finding.class()) {
                *self.new.entry(class).or_default() += 1;
            }
            let rows: BTreeSet<usize> = finding.known.iter().copied().flatten().collect();
            for row in rows {
                if let Some((_, count)) = self.known.get_mut(row) {
                    *count += 1;
                }
            }
        }
    }

    /// The number of responses with a new difference.
    pub fn different(&self) -> usize {
        self.new.values().sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (reason, count) in &self.known {
            writeln!(f, "{count:6} known: {reason}")?;
        }
        for (class, count) in &self.new {
            writeln!(f, "{count:6} differ: {class}")?;
        }
        let Self { questions, compared, .. } = self;
        write!(f, "{questions} questions, {compared} answers compared, {} differ", self.different())
    }
}

/// A text for output: a long one begins shortly before its first difference from the other.
pub(super) fn shown(text: &str, other: &str) -> String {
    const LIMIT: usize = 400;
    const BEFORE: usize = 40;
    let same = text.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let skipped = if same > 2 * BEFORE { same - BEFORE } else { 0 };
    let shown: String = text.chars().skip(skipped).take(LIMIT).collect();
    if skipped > 0 { format!("…{shown}") } else { shown }
}
