//! Differences that are meant: a row each, with its reason.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use regex::Regex;
use serde::Deserialize;

use super::compare::Difference;

/// The rows of `known.yaml`.
pub(super) struct Known(Vec<Row>);

/// A difference that is meant; what a row does not say may be anything.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Why a maintainer of kube-apiserver would agree.
    reason: String,
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    place: String,
    #[serde(default)]
    reference: String,
    #[serde(default)]
    ours: String,
}

/// A row whose patterns can be asked.
struct Row {
    reason: String,
    /// For the scenario, the question, the place, the reference's value and ours.
    patterns: [Regex; 5],
}

impl Known {
    pub(super) fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let rows: Vec<Written> = serde_saphyr::from_str(&text)
            .map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let compiled = |row: Written| -> Result<Row> {
            let Written { reason, scenario, question, place, reference, ours } = row;
            let pattern =
                |text: String| Regex::new(&text).with_context(|| format!("in {reason:?}"));
            let patterns = [
                pattern(scenario)?,
                pattern(question)?,
                pattern(place)?,
                pattern(reference)?,
                pattern(ours)?,
            ];
            Ok(Row { patterns, reason })
        };
        Ok(Self(rows.into_iter().map(compiled).collect::<Result<_>>()?))
    }

    /// The number of the row that a difference falls under.
    pub(super) fn row(&self, scenario: &str, question: &str, found: &Difference) -> Option<usize> {
        let texts = [scenario, question, &found.place, &found.reference, &found.ours];
        let fits = |row: &Row| row.patterns.iter().zip(texts).all(|(p, text)| p.is_match(text));
        self.0.iter().position(fits)
    }

    /// The reasons, by their numbers.
    pub(super) fn reasons(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|row| row.reason.as_str())
    }
}
