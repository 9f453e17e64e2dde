//! The intended differences. Each has a row with its reason.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use regex::Regex;
use serde::Deserialize;

use super::compare::Difference;

/// The rows of `known.yaml`.
pub(super) struct Known(Vec<Row>);

/// An intended difference; a member that a row leaves out matches anything.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// A reason that a maintainer of kube-apiserver would accept.
    reason: String,
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    reference: String,
    #[serde(default)]
    ours: String,
}

/// A row with compiled patterns.
struct Row {
    reason: String,
    /// Patterns for the scenario, the request, the path, the reference's value and Pintle's.
    patterns: [Regex; 5],
}

impl Known {
    pub(super) fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let rows: Vec<Written> = serde_saphyr::from_str(&text)
            .map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let compiled = |row: Written| -> Result<Row> {
            let Written { reason, scenario, question, path, reference, ours } = row;
            let pattern =
                |text: String| Regex::new(&text).with_context(|| format!("in {reason:?}"));
            let patterns = [
                pattern(scenario)?,
                pattern(question)?,
                pattern(path)?,
                pattern(reference)?,
                pattern(ours)?,
            ];
            Ok(Row { patterns, reason })
        };
        Ok(Self(rows.into_iter().map(compiled).collect::<Result<_>>()?))
    }

    /// The number of the row that matches a difference.
    pub(super) fn row(&self, scenario: &str, question: &str, found: &Difference) -> Option<usize> {
        let texts = [scenario, question, &found.path, &found.reference, &found.ours];
        let fits = |row: &Row| row.patterns.iter().zip(texts).all(|(p, text)| p.is_match(text));
        self.0.iter().position(fits)
    }

    /// The reasons, by their numbers.
    pub(super) fn reasons(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|row| row.reason.as_str())
    }
}
