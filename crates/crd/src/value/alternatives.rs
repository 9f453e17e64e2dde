//! The schemas that a value is tried against: `anyOf`, `oneOf`, `allOf` and `not`.
//!
//! A schema may have as many alternatives as an object has values, and alternatives nest. So the
//! validations of values in attempts are counted, and an object that needs too many is refused.

use pintle_meta::field::Error;
use pintle_value::{Path, Value};

use super::{Findings, Validator};
use crate::structural::{Rules, Structural};

/// The most values that are validated in attempts: one or two seconds of work.
const VISITS_MAX: usize = 4_000_000;

/// The number of bytes of text that count as one value: a pattern may read each of them.
const VISIT_BYTES: usize = 64;

/// The attempts of a validation.
#[derive(Default)]
pub(super) struct Attempts {
    /// How deep the current attempt is within others; 0 outside.
    depth: usize,
    /// The values that were validated in attempts.
    visits: usize,
}

impl Attempts {
    /// Counts a value; returns whether it may be validated.
    pub(super) fn visit(&mut self, value: &Value) -> bool {
        if self.depth > 0 {
            let text = value.as_str().map_or(0, str::len);
            self.visits = self.visits.saturating_add(1 + text / VISIT_BYTES);
        }
        self.visits <= VISITS_MAX
    }

    /// The error of an object that needs too many attempts. Its other errors are incomplete.
    pub(super) fn check(&self, field_path: &Path) -> Option<Error> {
        let words = "the schemas of anyOf, oneOf, allOf and not apply to too many values";
        (self.visits > VISITS_MAX).then(|| Error::forbidden(field_path, words))
    }
}

impl Validator<'_> {
    pub(super) fn logical_operators(&mut self, rules: &Rules, value: &Value, old: Option<&Value>) {
        self.findings.checks += 1;
        if self.findings.errors.is_full() {
            return;
        }
        if !rules.any_of.is_empty() {
            let tried = self.try_each(&rules.any_of, value, old, 1);
            if tried.valid == 0 {
                self.composite("must validate at least one schema (anyOf)");
                self.findings.add(tried.best);
            }
        }
        if !rules.one_of.is_empty() {
            let tried = self.try_each(&rules.one_of, value, old, usize::MAX);
            match tried.valid {
                1 => {}
                0 => {
                    let words = "must validate one and only one schema (oneOf). Found none valid";
                    self.composite(words);
                    self.findings.add(tried.best);
                }
                several => self.composite(&format!(
                    "must validate one and only one schema (oneOf). Found {several} valid \
                     alternatives"
                )),
            }
        }
        if !rules.all_of.is_empty() {
            let mut valid = 0;
            for schema in &rules.all_of {
                let findings = self.attempt(schema, value, old);
                valid += usize::from(findings.errors.is_empty());
                self.findings.add(findings);
            }
            if valid < rules.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                self.composite(&format!("must validate all the schemas (allOf){none}"));
            }
        }
        if let Some(not) = &rules.not
            && self.attempt(not, value, old).errors.is_empty()
        {
            self.composite("must not validate the schema (not)");
        }
    }

    /// Tries schemas until so many are valid.
    fn try_each(
        &mut self,
        schemas: &[Structural],
        value: &Value,
        old: Option<&Value>,
        enough: usize,
    ) -> Tried {
        let mut tried = Tried::default();
        for schema in schemas {
            let findings = self.attempt(schema, value, old);
            if findings.errors.is_empty() {
                tried.valid += 1;
            } else if tried.best.errors.is_empty() || findings.checks > tried.best.checks {
                tried.best = findings;
            }
            if tried.valid == enough {
                break;
            }
        }
        tried
    }

    /// The findings of a schema by itself.
    fn attempt(&mut self, schema: &Structural, value: &Value, old: Option<&Value>) -> Findings {
        let findings = std::mem::take(&mut self.findings);
        self.attempts.depth += 1;
        self.value(schema, value, old);
        self.attempts.depth -= 1;
        std::mem::replace(&mut self.findings, findings)
    }
}

/// The outcome of several attempts.
#[derive(Default)]
struct Tried {
    /// How many schemas are valid.
    valid: usize,
    /// The findings of the first schema with the most checks, if none is valid.
    best: Findings,
}
