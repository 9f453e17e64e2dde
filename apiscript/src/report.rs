//! The result of a run.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The result of a script.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All responses were as expected.
    Passed,
    /// A response was not as expected; the text describes it.
    Failed(String),
    /// The target lacks this ability.
    Skipped(String),
}

/// A script that was run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its file.
    pub file: PathBuf,
    /// Its sentence.
    pub script: String,
    /// Its result.
    pub outcome: Outcome,
    /// Its duration.
    pub took: Duration,
}

/// All scripts that were run: first those that ran together, then those that ran alone, both in the
/// order of their files.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The scripts.
    pub cases: Vec<Case>,
}

impl Report {
    /// The number of failed scripts.
    pub fn failed(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, Outcome::Failed(_))).count()
    }

    /// The number of skipped scripts.
    pub fn skipped(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, Outcome::Skipped(_))).count()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match &self.outcome {
            Outcome::Passed => "ok",
            Outcome::Failed(_) => "FAILED",
            Outcome::Skipped(_) => "skipped",
        };
        write!(f, "{word:7} {}: {}", self.file.display(), self.script)?;
        if let Outcome::Skipped(ability) = &self.outcome {
            write!(f, " (needs {ability})")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            if let Outcome::Failed(why) = &case.outcome {
                writeln!(f, "\n--- {}: {}\n{}", case.file.display(), case.script, why.trim_end())?;
            }
        }
        let (failed, skipped) = (self.failed(), self.skipped());
        let passed = self.cases.len() - failed - skipped;
        write!(f, "\n{passed} scripts passed, {failed} failed, {skipped} skipped")
    }
}
