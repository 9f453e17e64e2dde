//! Measures of Pod Security, with upstream's labels sorted by name.

use pintle_measure::{Counter, Series};
use pintle_registry::admission::{Attributes, Operation};

/// Measures of Pod Security.
#[derive(Debug, Default)]
pub struct Measures {
    /// Evaluations by decision, mode, level, version, operation, resource and subresource.
    pub evaluations: Series<7, Counter>,
    /// Exempt writes by operation, resource and subresource.
    pub exemptions: Series<3, Counter>,
    /// Errors by whether they failed the write, operation, resource and subresource.
    pub errors: Series<4, Counter>,
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    Deny,
}

/// The mode of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Enforce,
    Audit,
    Warn,
}

/// The labels of a write: operation, resource and subresource.
pub(super) struct WriteLabels<'a>([&'a str; 3]);

impl<'a> WriteLabels<'a> {
    pub(super) fn of(write: &Attributes<'a>) -> Self {
        let operation = match write.operation {
            Operation::Create => "create",
            Operation::Update => "update",
            Operation::Delete => "delete",
            Operation::Connect => "connect",
        };
        let of = &write.resource.resource;
        let sort = match (of.group.as_str(), of.resource.as_str()) {
            ("", "pods") => "pod",
            ("", "namespaces") => "namespace",
            _ => "controller",
        };
        Self([operation, sort, write.subresource])
    }
}

impl Measures {
    /// Counts an evaluation; `policy` is its level and version.
    pub(super) fn evaluated(
        &self,
        verdict: Verdict,
        mode: Mode,
        [level, version]: [&str; 2],
        WriteLabels([operation, sort, part]): &WriteLabels<'_>,
    ) {
        let verdict = match verdict {
            Verdict::Allow => "allow",
            Verdict::Deny => "deny",
        };
        let mode = match mode {
            Mode::Enforce => "enforce",
            Mode::Audit => "audit",
            Mode::Warn => "warn",
        };
        self.evaluations.with([verdict, mode, level, version, operation, sort, part]).add(1);
    }

    /// Counts a write that is exempt.
    pub(super) fn exempted(&self, WriteLabels(labels): &WriteLabels<'_>) {
        self.exemptions.with(*labels).add(1);
    }

    /// Counts a failure.
    pub(super) fn failed(
        &self,
        fatal: bool,
        WriteLabels([operation, sort, part]): &WriteLabels<'_>,
    ) {
        let fatal = if fatal { "true" } else { "false" };
        self.errors.with([fatal, operation, sort, part]).add(1);
    }
}
