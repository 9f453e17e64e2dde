//! A parsed MutatingAdmissionPolicy with its compiled expressions.

use pintle_meta::field;
use pintle_value::{Path, Value};

use crate::expressions::{Expected, Expression};
use crate::policies::Compiled;
use crate::policies::head::{Head, items, text};

/// A MutatingAdmissionPolicy.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(super) head: Head,
    pub(super) mutations: Vec<Mutation>,
    /// Whether the policy is evaluated again when a policy was applied or a webhook changed the
    /// object (`reinvocationPolicy: IfNeeded`).
    pub(super) wants_reinvocation: bool,
}

/// A mutation of a policy.
#[derive(Debug)]
pub(super) enum Mutation {
    /// Evaluates to an apply configuration.
    Apply(Expression),
    /// Evaluates to a list of JSON patch operations.
    Patch(Expression),
}

impl Compiled for Policy {
    fn read(policy: &Value) -> Self {
        Self::read(policy)
    }
}

impl Policy {
    pub(crate) fn read(policy: &Value) -> Self {
        let (head, (mutations, wants_reinvocation)) = Head::read(policy, true, |spec, compiler| {
            let expression = |mutation: &Value, member: &str, expected| {
                let text = mutation.str_at(&[member, "expression"]).unwrap_or_default();
                compiler.compile(text.trim(), expected)
            };
            let mutation = |mutation: &Value| match text(mutation, "patchType") {
                "JSONPatch" => {
                    Mutation::Patch(expression(mutation, "jsonPatch", Expected::Patches))
                }
                _ => Mutation::Apply(expression(mutation, "applyConfiguration", Expected::Object)),
            };
            let mutations = items(spec, "mutations").iter().map(mutation).collect();
            (mutations, text(spec, "reinvocationPolicy") == "IfNeeded")
        });
        Self { head, mutations, wants_reinvocation }
    }

    /// Returns the errors of all expressions.
    pub(crate) fn problems(&self) -> field::Errors {
        let mut problems = self.head.problems();
        for (index, mutation) in self.mutations.iter().enumerate() {
            let path = Path::new("spec").field("mutations").index(index);
            let (member, expression) = match mutation {
                Mutation::Apply(expression) => ("applyConfiguration", expression),
                Mutation::Patch(expression) => ("jsonPatch", expression),
            };
            problems.extend(expression.error(&path.field(member).field("expression")));
        }
        problems
    }
}
