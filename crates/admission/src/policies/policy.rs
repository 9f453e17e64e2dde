//! A policy and a binding as they are kept: read once, with their expressions.

use pintle_meta::{GroupVersion, Reason, field, object};
use pintle_registry::Object;
use pintle_value::{Path, Str, Value};

use crate::conditions::Conditions;
use crate::expressions::{Compiler, Expression, Variables, Wanted};
use crate::matching::Matching;

/// The reasons that a validation may give besides the usual one.
const REASONS: [Reason; 3] =
    [Reason::Forbidden, Reason::Unauthorized, Reason::RequestEntityTooLarge];

/// A ValidatingAdmissionPolicy.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: Str,
    pub(super) matching: Matching,
    /// Where a decision cannot be had, the write passes.
    pub(super) lenient: bool,
    /// The kind of its parameters; of a version that is none, where it does not parse.
    pub(super) params: Option<(GroupVersion, Str)>,
    pub(super) variables: Variables,
    pub(super) conditions: Conditions,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Expression>,
}

/// What must hold.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    /// What to say where it does not; `""` for nothing in particular.
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: Reason,
}

/// A ValidatingAdmissionPolicyBinding.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: Str,
    pub(super) policy: Str,
    /// `None` for everything that the policy is about.
    pub(super) matching: Option<Matching>,
    pub(super) params: Option<ParamRef>,
    pub(super) denies: bool,
    pub(super) warns: bool,
}

/// Which objects are parameters.
#[derive(Debug)]
pub(super) struct ParamRef {
    /// `""` where they are selected.
    pub(super) name: Str,
    /// `""` for the namespace of the request.
    pub(super) namespace: Str,
    pub(super) selector: Value,
    /// Where there are none, the write is refused.
    pub(super) required: bool,
}

impl Policy {
    pub(super) fn of(policy: &Object) -> Self {
        Self::read(&policy.tree())
    }

    pub(super) fn read(policy: &Value) -> Self {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let params = spec.get("paramKind").map(|kind| {
            let text = |member| kind.str_at(&[member]).unwrap_or_default();
            let version = GroupVersion::parse(text("apiVersion"));
            (version.unwrap_or_else(|| GroupVersion::new("", "")), Str::from(text("kind")))
        });
        let mut compiler = Compiler::new(params.is_some());
        let mut variables = Variables::default();
        for variable in items(spec, "variables") {
            compiler.name(&mut variables, text(variable, "name"), text(variable, "expression"));
        }
        let annotation = |annotation: &Value| {
            compiler.compile(text(annotation, "valueExpression"), Wanted::TextOrNull)
        };
        Self {
            name: object::name(policy).into(),
            matching: Matching::of_policy(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            lenient: text(spec, "failurePolicy") == "Ignore",
            params,
            conditions: Conditions::of(spec, &compiler),
            validations: items(spec, "validations")
                .iter()
                .map(|validation| Validation::read(validation, &compiler))
                .collect(),
            annotations: items(spec, "auditAnnotations").iter().map(annotation).collect(),
            variables,
        }
    }
}

impl Policy {
    /// Everything that is wrong with the expressions of a policy.
    pub(super) fn problems(&self) -> Vec<field::Error> {
        let mut problems = Vec::new();
        let mut check = |list: &str, member: &str, index: usize, expression: &Expression| {
            let path = Path::new("spec").field(list).index(index).field(member);
            let text = Value::from(expression.text.as_str());
            problems
                .extend(expression.problem().map(|why| field::Error::invalid(&path, &text, why)));
        };
        for (index, condition) in self.conditions.expressions().enumerate() {
            check("matchConditions", "expression", index, condition);
        }
        for (index, variable) in self.variables.expressions().enumerate() {
            check("variables", "expression", index, variable);
        }
        for (index, validation) in self.validations.iter().enumerate() {
            check("validations", "expression", index, &validation.expression);
            if let Some(message) = &validation.message_expression {
                check("validations", "messageExpression", index, message);
            }
        }
        for (index, annotation) in self.annotations.iter().enumerate() {
            check("auditAnnotations", "valueExpression", index, annotation);
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
            expression: compiler.compile(text(validation, "expression"), Wanted::Bool),
            message: text(validation, "message").trim().to_owned(),
            message_expression: (!message.is_empty())
                .then(|| compiler.compile(message, Wanted::Text)),
            reason: reason.unwrap_or(Reason::Invalid),
        }
    }
}

impl Binding {
    pub(super) fn of(binding: &Object) -> Self {
        let tree = binding.tree();
        let spec = tree.get("spec").unwrap_or(&Value::Null);
        let actions = items(spec, "validationActions");
        let acts = |action: &str| actions.iter().any(|one| one.as_str() == Some(action));
        Self {
            name: binding.name().into(),
            policy: text(spec, "policyName").into(),
            matching: spec.get("matchResources").map(Matching::of_policy),
            params: spec.get("paramRef").map(|said| ParamRef {
                name: text(said, "name").into(),
                namespace: text(said, "namespace").into(),
                selector: said.get("selector").cloned().unwrap_or_default(),
                required: text(said, "parameterNotFoundAction") == "Deny",
            }),
            denies: acts("Deny"),
            warns: acts("Warn"),
        }
    }
}

fn items<'a>(object: &'a Value, member: &str) -> &'a [Value] {
    object.get(member).and_then(Value::as_array).unwrap_or_default()
}

fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object.str_at(&[member]).unwrap_or_default()
}
