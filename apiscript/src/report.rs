//! What came of a run.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What came of one script.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All was as expected.
    Passed,
    /// Something was not; the text says what.
    Failed(String),
    /// The target lacks this ability.
    Skipped(String),
}

/// One script that was run.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file it stands in.
    pub file: PathBuf,
    /// Its sentence.
    pub script: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// All scripts that were run, in the order of their files.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The scripts.
    pub cases: Vec<Case>,
}

impl Report {
    /// How many failed.
    pub fn failed(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, Outcome::Failed(_))).count()
    }

    /// How many were skipped.
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
