//! Expressions about a request: what they know, what they must come to, and what becomes of them (upstream:
//! `plugin/cel`).

mod declarations;
pub(crate) mod typed;

use std::sync::Arc;

use pintle_cel::{
    Authorizer, Bindings, Budget, Composed, Composition, Declaration, Environment, Program,
    ResourceCheck, SIZE_MAX, Type,
};
use pintle_value::Value;

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be run";

/// The type of the values that a policy names, in messages.
const VARIABLES: &str = "kubernetes.variables";

/// What an expression must come to, and so what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A condition.
    Bool,
    /// A message, which asks nobody.
    Message,
    /// An annotation.
    TextOrNull,
    /// A value with a name.
    Anything,
    /// A configuration to be applied.
    Object,
    /// Operations of a JSON patch.
    Patches,
}

/// An expression that was read.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    /// Why it cannot be evaluated, if it cannot.
    program: Result<Program, String>,
}

impl Expression {
    /// What is wrong with it as it is written.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.program.as_ref().err().map(String::as_str)
    }
}

/// Values that expressions can use by their names; each may use those before it.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    composition: Composition,
    texts: Vec<String>,
}

impl Variables {
    /// Their expressions, with what is wrong with them.
    pub(crate) fn problems(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.texts.iter().map(String::as_str).zip(self.composition.problems())
    }
}

/// Reads the expressions of one place.
pub(crate) struct Compiler {
    /// What all know but authorizers and variables.
    facts: Environment,
    /// Whether they know `variables`.
    names: bool,
    /// With authorizers.
    authorized: Environment,
    variables: Variables,
}

/// What expressions are told of a request, in the order of declaration.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) object: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) request: &'a Value,
    pub(crate) namespace: &'a Value,
    /// `None` for who has none to know.
    pub(crate) params: Option<&'a Value>,
    /// Who is asked what the user may do, and what the request is about.
    pub(crate) authorizer: &'a Arc<dyn Authorizer>,
    pub(crate) resource: &'a ResourceCheck,
}

/// Evaluations of the expressions of one place about one request.
pub(crate) struct Evaluation<'a> {
    bindings: Bindings<'a>,
    composed: Composed<'a>,
}

/// Why an expression has no value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// What is wrong with this one.
    Expression(String),
    /// Nothing more can be evaluated.
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

/// What is known of the types of objects: nothing.
pub(crate) const ANYTHING: Declaration = Declaration::Dyn { size_max: SIZE_MAX };

impl Compiler {
    /// For the conditions of a webhook.
    pub(crate) fn of_webhook() -> Self {
        Self::of_policy(ANYTHING, None)
    }

    /// For a policy that knows so much of objects and of its parameters, if it has any.
    pub(crate) fn of_policy(object: Declaration, params: Option<Declaration>) -> Self {
        let namespace = Declaration::Nullable(Arc::new(declarations::namespace()));
        let object = Arc::new(object);
        let mut facts = Environment::new()
            .with("object", object.clone())
            .with("oldObject", object)
            .with("request", declarations::request())
            .with("namespaceObject", namespace);
        if let Some(params) = params {
            facts = facts.with("params", params);
        }
        let authorized = facts
            .clone()
            .with("authorizer", Declaration::AUTHORIZER)
            .with("authorizer.requestResource", Declaration::RESOURCE_CHECK);
        Self { facts, names: false, authorized, variables: Variables::default() }
    }

    /// Lets expressions that come later know `variables`.
    pub(crate) const fn compose(&mut self) {
        self.names = true;
    }

    /// Reads an expression.
    pub(crate) fn compile(&self, text: &str, wanted: Wanted) -> Expression {
        Expression { text: text.to_owned(), program: self.program(text, wanted) }
    }

    /// Reads a named value, which expressions that come later know.
    pub(crate) fn name(&mut self, name: &str, text: &str) {
        let program = self.program(text, Wanted::Anything);
        self.variables.composition.add(name, program);
        self.variables.texts.push(text.to_owned());
    }

    /// The named values, when all is read.
    pub(crate) fn into_variables(self) -> Variables {
        self.variables
    }

    fn program(&self, text: &str, wanted: Wanted) -> Result<Program, String> {
        let environment = match wanted {
            Wanted::Message => self.facts.clone(),
            Wanted::Object | Wanted::Patches => self.authorized.clone().with_patches(),
            _ => self.authorized.clone(),
        };
        let program = self.composing(environment, text).compile(text);
        let program = program.map_err(|why| format!("compilation failed: {why}"))?;
        match wanted.refuse(program.output_type()) {
            Some(why) => Err(why),
            None => Ok(program),
        }
    }

    /// With the named values that an expression may use.
    fn composing(&self, environment: Environment, text: &str) -> Environment {
        if !self.names {
            return environment;
        }
        let variables = self.variables.composition.declaration(VARIABLES, text);
        environment.with("variables", variables)
    }
}

impl Wanted {
    /// What is wrong with a type, if anything.
    fn refuse(self, output: &Type) -> Option<String> {
        let is_made =
            |output: &Type, name: &str| matches!(output, Type::Made(made) if **made == *name);
        let (fits, wanted) = match self {
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
        (!fits).then(|| format!("must evaluate to {wanted} but got {output}"))
    }
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(facts: Facts<'a>, variables: &'a Variables) -> Self {
        let Facts { object, old, request, namespace, params, authorizer, resource } = facts;
        let mut bindings = Bindings::new().with(object).with(old).with(request).with(namespace);
        if params.is_some() {
            bindings = bindings.with(params);
        }
        let bindings = bindings.with_authorizer(authorizer, resource.clone());
        Self { bindings, composed: Composed::new(&variables.composition) }
    }

    /// An expression's value.
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
