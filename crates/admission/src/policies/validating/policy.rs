//! A parsed ValidatingAdmissionPolicy with its compiled expressions.

use pintle_meta::{Reason, field};
use pintle_value::{Str, Value};

use crate::expressions::{Compiler, Expected, Expression};
use crate::policies::Compiled;
use crate::policies::head::{Head, at, items, text};

/// The reasons that a validation can set instead of `Invalid`.
const REASONS: [Reason; 3] =
    [Reason::Forbidden, Reason::Unauthorized, Reason::RequestEntityTooLarge];

/// A ValidatingAdmissionPolicy.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(super) head: Head,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
}

/// An audit annotation of a policy.
#[derive(Debug)]
pub(super) struct Annotation {
    pub(super) key: Str,
    pub(super) value: Expression,
}

/// A validation of a policy.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    /// The message of a failure; `""` if the policy has none.
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: Reason,
}

impl Compiled for Policy {
    fn read(policy: &Value) -> Self {
        Self::read(policy)
    }
}

impl Policy {
    pub(crate) fn read(policy: &Value) -> Self {
        let (head, (validations, annotations)) = Head::read(policy, false, |spec, compiler| {
            let annotation = |annotation: &Value| Annotation {
                key: text(annotation, "key").into(),
                value: compiler.compile(text(annotation, "valueExpression"), Expected::TextOrNull),
            };
            let validations = items(spec, "validations").iter();
            let validations = validations.map(|one| Validation::read(one, compiler)).collect();
            (validations, items(spec, "auditAnnotations").iter().map(annotation).collect())
        });
        Self { head, validations, annotations }
    }

    /// Returns the errors of all expressions.
    pub(crate) fn problems(&self) -> field::Errors {
        let mut problems = self.head.problems();
        for (index, validation) in self.validations.iter().enumerate() {
            let path = |member| at("validations", index, member);
            problems.extend(validation.expression.error(&path("expression")));
            let message = validation.message_expression.as_ref();
            problems.extend(
                message.and_then(|expression| expression.error(&path("messageExpression"))),
            );
        }
        for (index, annotation) in self.annotations.iter().enumerate() {
            let path = at("auditAnnotations", index, "valueExpression");
            problems.extend(annotation.value.error(&path));
        }
        problems
    }
}

impl Validation {
    fn read(validation: &Value, compiler: &Compiler) -> Self {
        let message = text(validation, "messageExpression");
        let word = text(validation, "reason");
        let reason = REASONS.into_iter().find(|reason| reason.word() == word);
        Self {
            expression: compiler.compile(text(validation, "expression"), Expected::Bool),
            message: text(validation, "message").trim().to_owned(),
            message_expression: (!message.is_empty())
                .then(|| compiler.compile(message, Expected::Message)),
            reason: reason.unwrap_or(Reason::Invalid),
        }
    }
}
