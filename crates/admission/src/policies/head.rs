//! The common part of validating and mutating policies.

use pintle_meta::{GroupVersion, field, object};
use pintle_value::{Path, Str, Value};

use crate::conditions::Conditions;
use crate::expressions::{self, ANYTHING, Compiler, Variables};

/// The parameter kind and the CEL environment of a policy.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) name: Str,
    /// Whether failures are ignored.
    pub(super) ignores_failures: bool,
    /// The kind of its parameters; an invalid `apiVersion` reads as an empty group and version.
    pub(super) params: Option<(GroupVersion, Str)>,
    pub(super) variables: Variables,
    pub(super) conditions: Conditions,
}

impl Head {
    /// Parses a policy's common part, and the rest with `rest`. Expressions can use `variables` if
    /// there are any, or always if `declares_variables`.
    pub(super) fn read<T>(
        policy: &Value,
        declares_variables: bool,
        rest: impl FnOnce(&Value, &Compiler) -> T,
    ) -> (Self, T) {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let params = spec.get("paramKind").map(|kind| {
            let version = GroupVersion::parse(text(kind, "apiVersion"));
            let version = version.unwrap_or_else(|| GroupVersion::new("", ""));
            (version, Str::from(text(kind, "kind")))
        });
        let mut compiler = Compiler::of_policy(ANYTHING, params.is_some().then_some(ANYTHING));
        // Match conditions cannot use variables.
        let conditions = Conditions::of(spec, &compiler);
        let variables = items(spec, "variables");
        if declares_variables || !variables.is_empty() {
            compiler.declare_variables();
        }
        for variable in variables {
            let expression = text(variable, "expression");
            // A variable without an expression gets no name.
            let name = if expression.trim().is_empty() { "" } else { text(variable, "name") };
            compiler.add_variable(name, expression);
        }
        let rest = rest(spec, &compiler);
        let head = Self {
            name: object::name(policy).into(),
            ignores_failures: text(spec, "failurePolicy") == "Ignore",
            params,
            conditions,
            variables: compiler.into_variables(),
        };
        (head, rest)
    }

    /// Returns the errors of the match conditions and variables.
    pub(super) fn problems(&self) -> field::Errors {
        let conditions = self.conditions.expressions().enumerate();
        let conditions = conditions.filter_map(|(index, condition)| {
            condition.error(&at("matchConditions", index, "expression"))
        });
        let variables = self.variables.problems().enumerate();
        let variables = variables.filter_map(|(index, (text, why))| {
            Some(expressions::error(&at("variables", index, "expression"), text, why?))
        });
        conditions.chain(variables).collect()
    }
}

/// The path to a member of an item of a list of a policy.
pub(super) fn at(list: &str, index: usize, member: &str) -> Path {
    Path::new("spec").field(list).index(index).field(member)
}

pub(super) fn items<'a>(object: &'a Value, member: &str) -> &'a [Value] {
    object.get(member).and_then(Value::as_array).unwrap_or_default()
}

pub(super) fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object.str_at(&[member]).unwrap_or_default()
}
