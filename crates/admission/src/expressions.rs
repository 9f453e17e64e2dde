//! CEL expressions of policies and webhooks: their variables, their output types, and their
//! evaluation (upstream: `plugin/cel`).

mod declarations;
pub(crate) mod typed;

use std::sync::Arc;

use pintle_cel::{
    Authorizer, Bindings, Budget, CompileError, Composed, Composition, Declaration, Environment,
    Program, ResourceCheck, SIZE_MAX, Type,
};
use pintle_meta::field::Error;
use pintle_value::{Path, Value};

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be run";

/// How the error begins that a constant part of an expression cannot be evaluated.
const INSTANTIATION_FAILED: &str = "program instantiation failed: ";

/// The name of the type of `variables` in messages.
const VARIABLES: &str = "kubernetes.variables";

/// The output type that the use of an expression requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A condition or a validation.
    Bool,
    /// A message expression, which cannot use `authorizer`.
    Message,
    /// The value of an audit annotation.
    TextOrNull,
    /// The value of a policy's variable.
    Anything,
    /// An apply configuration.
    Object,
    /// A list of JSON patch operations.
    Patches,
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    /// The error is the message of the compiler.
    program: Result<Program, String>,
}

impl Expression {
    /// Returns the compilation error, if there is one.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.program.as_ref().err().map(String::as_str)
    }

    /// Returns the compilation error as that of the field at `path`.
    pub(crate) fn error(&self, path: &Path) -> Option<Error> {
        Some(error(path, &self.text, self.problem()?))
    }
}

/// The error of the field with an expression that does not compile. Upstream calls it internal if
/// the expression is correct, but a constant part of it cannot be evaluated.
pub(crate) fn error(path: &Path, text: &str, why: &str) -> Error {
    match why.starts_with(INSTANTIATION_FAILED) {
        true => Error::internal(path, why),
        false => Error::invalid(path, &text.into(), why),
    }
}

/// The variables of a policy; the expression of a variable can use the variables before it.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    composition: Composition,
    texts: Vec<String>,
}

impl Variables {
    /// Returns the text of each variable, with its compilation error.
    pub(crate) fn problems(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.texts.iter().map(String::as_str).zip(self.composition.problems())
    }
}

/// Compiles the expressions of one policy or webhook.
pub(crate) struct Compiler {
    /// The variables that every expression has, without `authorizer` and `variables`.
    without_authorizer: Environment,
    /// Whether expressions can use `variables`.
    has_variables: bool,
    /// As `without_authorizer`, with `authorizer`.
    authorized: Environment,
    variables: Variables,
}

/// The values of the variables for one request, in the order of declaration.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) object: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) request: &'a Value,
    pub(crate) namespace: &'a Value,
    /// `None` if the policy has no parameter kind.
    pub(crate) params: Option<&'a Value>,
    /// Answers the questions of `authorizer`; `resource` is its `requestResource`.
    pub(crate) authorizer: &'a Arc<dyn Authorizer>,
    pub(crate) resource: &'a ResourceCheck,
}

/// Evaluates the expressions of one policy or webhook for one request; each variable is evaluated
/// at most once.
pub(crate) struct Evaluation<'a> {
    bindings: Bindings<'a>,
    composed: Composed<'a>,
}

/// The reason why an expression has no value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The error of this expression; other expressions can still be evaluated.
    Expression(String),
    /// The cost budget is used up, so no further expression is evaluated.
    Budget,
}

impl Failure {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Expression(why) => why,
            Self::Budget => OUT_OF_BUDGET.to_owned(),
        }
    }
}

/// The declaration of objects whose type is unknown.
pub(crate) const ANYTHING: Declaration = Declaration::Dyn { size_max: SIZE_MAX };

impl Compiler {
    /// Returns a compiler for the conditions of a webhook.
    pub(crate) fn of_webhook() -> Self {
        Self::of_policy(ANYTHING, None)
    }

    /// Returns a compiler for a policy whose objects and parameters have these declarations;
    /// `params` is `None` without a parameter kind.
    pub(crate) fn of_policy(object: Declaration, params: Option<Declaration>) -> Self {
        let namespace = Declaration::Nullable(Arc::new(declarations::namespace()));
        let object = Arc::new(object);
        let mut without_authorizer = Environment::new()
            .with("object", object.clone())
            .with("oldObject", object)
            .with("request", declarations::request())
            .with("namespaceObject", namespace);
        if let Some(params) = params {
            without_authorizer = without_authorizer.with("params", params);
        }
        let authorized = without_authorizer
            .clone()
            .with("authorizer", Declaration::AUTHORIZER)
            .with("authorizer.requestResource", Declaration::RESOURCE_CHECK);
        Self {
            without_authorizer,
            has_variables: false,
            authorized,
            variables: Variables::default(),
        }
    }

    /// Declares `variables` for the expressions that are compiled from now on.
    pub(crate) const fn declare_variables(&mut self) {
        self.has_variables = true;
    }

    /// Compiles an expression.
    pub(crate) fn compile(&self, text: &str, expected: Expected) -> Expression {
        Expression { text: text.to_owned(), program: self.program(text, expected) }
    }

    /// Adds a variable, which later expressions can use.
    pub(crate) fn add_variable(&mut self, name: &str, text: &str) {
        let program = self.program(text, Expected::Anything);
        self.variables.composition.add(name, program);
        self.variables.texts.push(text.to_owned());
    }

    /// Returns the variables, after all expressions are compiled.
    pub(crate) fn into_variables(self) -> Variables {
        self.variables
    }

    fn program(&self, text: &str, expected: Expected) -> Result<Program, String> {
        let environment = match expected {
            Expected::Message => self.without_authorizer.clone(),
            Expected::Object | Expected::Patches => self.authorized.clone().with_patches(),
            _ => self.authorized.clone(),
        };
        let program = self.with_variables(environment, text).compile(text);
        let output = match &program {
            Ok(program) => program.output_type(),
            Err(CompileError::Constant(_, output)) => output,
            Err(why) => return Err(format!("compilation failed: {why}")),
        };
        match expected.type_error(output) {
            Some(why) => Err(why),
            None => program.map_err(|why| format!("{INSTANTIATION_FAILED}{why}")),
        }
    }

    /// Adds the declaration of the variables that the expression uses.
    fn with_variables(&self, environment: Environment, text: &str) -> Environment {
        if !self.has_variables {
            return environment;
        }
        let variables = self.variables.composition.declaration(VARIABLES, text);
        environment.with("variables", variables)
    }
}

impl Expected {
    /// Returns an error if the type of an expression is not the required one.
    fn type_error(self, output: &Type) -> Option<String> {
        let is_made =
            |output: &Type, name: &str| matches!(output, Type::Made(made) if **made == *name);
        let (fits, expected) = match self {
            Self::Anything => return None,
            Self::Bool => (matches!(output, Type::Bool), "bool"),
            Self::Message => (matches!(output, Type::String), "string"),
            Self::TextOrNull => {
                (matches!(output, Type::String | Type::Null), "one of [string null_type]")
            }
            Self::Object => (is_made(output, "Object"), "Object"),
            Self::Patches => {
                let fits = matches!(output, Type::List(items) if is_made(items, "JSONPatch"));
                (fits, "list(JSONPatch)")
            }
        };
        (!fits).then(|| format!("must evaluate to {expected} but got {output}"))
    }
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(inputs: Inputs<'a>, variables: &'a Variables) -> Self {
        let Inputs { object, old, request, namespace, params, authorizer, resource } = inputs;
        let mut bindings = Bindings::new().with(object).with(old).with(request).with(namespace);
        if params.is_some() {
            bindings = bindings.with(params);
        }
        let bindings = bindings.with_authorizer(authorizer, resource.clone());
        Self { bindings, composed: Composed::new(&variables.composition) }
    }

    /// Evaluates an expression.
    pub(crate) fn of(
        &self,
        expression: &'a Expression,
        budget: &mut Budget,
    ) -> Result<Value, Failure> {
        let program = expression.program.as_ref();
        let program =
            program.map_err(|why| Failure::Expression(format!("compilation error: {why}")))?;
        let value = program.evaluate_composed(&self.bindings, &self.composed, budget);
        value.map_err(|why| match budget.left() {
            0 => Failure::Budget,
            _ if why.is_misplaced() => Failure::Expression(why.message().to_owned()),
            _ => Failure::Expression(format!(
                "expression '{}' resulted in error: {}",
                expression.text,
                why.message()
            )),
        })
    }
}
