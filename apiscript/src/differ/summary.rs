//! What came of a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Class, Finding};

/// How much was asked, and what was different.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many questions were asked.
    pub questions: usize,
    /// How many answers were compared with the reference's, or with what was recorded of them.
    pub compared: usize,
    /// How many answers differ that should not, by the gravest class of a difference.
    pub new: BTreeMap<Class, usize>,
    /// The reasons of known differences, and how many answers have them.
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

    /// How many answers differ that should not.
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

/// A text for people: a long one from a little before where it parts from the other.
pub(super) fn shown(text: &str, other: &str) -> String {
    const LIMIT: usize = 400;
    const BEFORE: usize = 40;
    let same = text.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let skipped = if same > 2 * BEFORE { same - BEFORE } else { 0 };
    let shown: String = text.chars().skip(skipped).take(LIMIT).collect();
    if skipped > 0 { format!("…{shown}") } else { shown }
}
