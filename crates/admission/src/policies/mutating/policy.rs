//! A MutatingAdmissionPolicy as it is kept: read once, with its expressions.

use pintle_meta::field;
use pintle_registry::{Object, Unreadable};
use pintle_value::{Path, Value};

use crate::expressions::{Expression, Wanted};
use crate::policies::head::{Head, items, problem, text};

/// A MutatingAdmissionPolicy.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(super) head: Head,
    pub(super) mutations: Vec<Mutation>,
    /// It is to be asked again if others changed the object after it.
    pub(super) again: bool,
}

/// A change, as an expression tells it.
#[derive(Debug)]
pub(super) enum Mutation {
    /// A configuration that is applied.
    Apply(Expression),
    /// Operations of a JSON patch.
    Patch(Expression),
}

impl AsRef<Head> for Policy {
    fn as_ref(&self) -> &Head {
        &self.head
    }
}

impl Policy {
    pub(super) fn of(policy: &Object) -> Result<Self, Unreadable> {
        Ok(Self::read(&policy.tree()?))
    }

    pub(crate) fn read(policy: &Value) -> Self {
        let (head, (mutations, again)) = Head::read(policy, true, |spec, compiler| {
            let expression = |mutation: &Value, member: &str, wanted| {
                let text = mutation.str_at(&[member, "expression"]).unwrap_or_default();
                compiler.compile(text, wanted)
            };
            let mutation = |mutation: &Value| match text(mutation, "patchType") {
                "JSONPatch" => Mutation::Patch(expression(mutation, "jsonPatch", Wanted::Patches)),
                _ => Mutation::Apply(expression(mutation, "applyConfiguration", Wanted::Object)),
            };
            let mutations = items(spec, "mutations").iter().map(mutation).collect();
            (mutations, text(spec, "reinvocationPolicy") == "IfNeeded")
        });
        Self { head, mutations, again }
    }

    /// Everything that is wrong with its expressions.
    pub(crate) fn problems(&self) -> field::Errors {
        let mut problems = self.head.problems();
        for (index, mutation) in self.mutations.iter().enumerate() {
            let path = Path::new("spec").field("mutations").index(index);
            let (member, expression) = match mutation {
                Mutation::Apply(expression) => ("applyConfiguration", expression),
                Mutation::Patch(expression) => ("jsonPatch", expression),
            };
            problems.extend(problem(expression, &path.field(member).field("expression")));
        }
        problems
    }
}
