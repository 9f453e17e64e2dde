//! Expressions about a request: what they know, what they must come to, and what becomes of them (upstream:
//! `plugin/cel`).

use std::sync::Arc;

use pintle_cel::{
    Bindings, Budget, Declaration, Environment, Merge, Object, Program, SIZE_MAX, Type,
};
use pintle_value::{Str, Value};

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be run";

/// The type of the values that a policy names, in messages.
const VARIABLES: &str = "kubernetes.variables";

/// What an expression must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Bool,
    Text,
    TextOrNull,
    Anything,
}

/// An expression that was read.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    /// Why it cannot be evaluated, if it cannot.
    program: Result<Program, String>,
}

impl Expression {
    /// What is wrong with it as it is written. Whoever asks an authorizer, which nobody here knows, is only
    /// told when it is evaluated: better to let such an expression in than to refuse what is one upstream.
    pub(crate) fn problem(&self) -> Option<&str> {
        let problem = self.program.as_ref().err().map(String::as_str);
        problem.filter(|_| !mentions(&self.text, "authorizer"))
    }
}

/// Values that expressions can use by their names; each may use those before it.
#[derive(Debug, Default)]
pub(crate) struct Variables(Vec<(Str, Expression)>);

impl Variables {
    /// Their expressions.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.0.iter().map(|(_, expression)| expression)
    }
}

/// Reads the expressions of one place.
pub(crate) struct Compiler {
    /// Everything but the variables.
    base: Environment,
    environment: Environment,
    declared: Vec<(Str, Declaration)>,
}

/// What expressions are told of a request, in the order of declaration.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) object: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) request: &'a Value,
    /// `None` for who has none to know.
    pub(crate) params: Option<&'a Value>,
    pub(crate) namespace: &'a Value,
}

/// Evaluations of the expressions of one place about one request.
pub(crate) struct Evaluation<'a> {
    facts: Facts<'a>,
    variables: &'a Variables,
    /// The values of variables so far.
    values: Value,
    /// Why variables have none; `None` for those that nobody wanted yet.
    failures: Vec<Option<String>>,
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

impl Compiler {
    /// For expressions that may know parameters.
    pub(crate) fn new(has_params: bool) -> Self {
        let anything = || Declaration::Dyn { size_max: SIZE_MAX };
        let mut base = Environment::new()
            .with("object", anything())
            .with("oldObject", anything())
            .with("request", request())
            .with("namespaceObject", Declaration::Nullable(Arc::new(namespace())));
        if has_params {
            base = base.with("params", anything());
        }
        let mut compiler = Self { environment: Environment::new(), base, declared: Vec::new() };
        compiler.declare();
        compiler
    }

    /// Reads an expression.
    pub(crate) fn compile(&self, text: &str, wanted: Wanted) -> Expression {
        let program = self.environment.compile(text);
        let program = program.map_err(|why| format!("compilation failed: {why}"));
        let program = program.and_then(|program| match wanted.refuse(program.output_type()) {
            Some(why) => Err(why),
            None => Ok(program),
        });
        Expression { text: text.to_owned(), program }
    }

    /// Reads a named value, which expressions that come later know.
    pub(crate) fn name(&mut self, variables: &mut Variables, name: &str, text: &str) {
        let expression = self.compile(text, Wanted::Anything);
        let output = expression.program.as_ref().map_or(&Type::Dyn, Program::output_type);
        self.declared.push((name.into(), declared(output)));
        variables.0.push((name.into(), expression));
        self.declare();
    }

    fn declare(&mut self) {
        let values = Object::new(VARIABLES, self.declared.clone());
        self.environment = self.base.clone().with("variables", Declaration::Object(values));
    }
}

impl Wanted {
    /// What is wrong with a type, if anything.
    fn refuse(self, output: &Type) -> Option<String> {
        let fits = match self {
            Self::Anything => true,
            Self::Bool => matches!(output, Type::Bool),
            Self::Text => matches!(output, Type::String),
            Self::TextOrNull => matches!(output, Type::String | Type::Null),
        };
        let wanted = match self {
            _ if fits => return None,
            Self::Bool => "bool",
            Self::Text | Self::Anything => "string",
            Self::TextOrNull => "one of [string null_type]",
        };
        Some(format!("must evaluate to {wanted} but got {output}"))
    }
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(facts: Facts<'a>, variables: &'a Variables) -> Self {
        let failures = vec![None; variables.0.len()];
        Self { facts, variables, values: Value::object(), failures }
    }

    /// An expression's value.
    pub(crate) fn of(
        &mut self,
        expression: &Expression,
        budget: &mut Budget,
    ) -> Result<Value, Failure> {
        let program = expression.program.as_ref();
        let program =
            program.map_err(|why| Failure::Expression(format!("compilation error: {why}")))?;
        self.find_values(expression, self.variables.0.len(), budget);
        self.run(program, budget).map_err(|why| match budget.left() {
            0 => Failure::Budget,
            _ => Failure::Expression(format!(
                "expression '{}' resulted in error: {why}",
                expression.text
            )),
        })
    }

    fn run(&self, program: &Program, budget: &mut Budget) -> Result<Value, String> {
        let Facts { object, old, request, params, namespace } = self.facts;
        let mut bindings = Bindings::new().with(object).with(old).with(request).with(namespace);
        if params.is_some() {
            bindings = bindings.with(params);
        }
        let value = program.evaluate(&bindings.with(&self.values), budget);
        value.map_err(|why| self.cause(why.message()))
    }

    /// Finds the values that an expression may want of the first `count` variables. Those that have none
    /// are only missed by who really comes to use them.
    fn find_values(&mut self, expression: &Expression, count: usize, budget: &mut Budget) {
        let variables = self.variables;
        for (index, (name, variable)) in variables.0.iter().enumerate().take(count) {
            let known = self.failures[index].is_some() || self.values.get(name).is_some();
            if known || !mentions(&expression.text, name) {
                continue;
            }
            self.find_values(variable, index, budget);
            let value = match &variable.program {
                Ok(program) => self.run(program, budget).map_err(|why| {
                    format!("composited variable {name:?} fails to evaluate: {why}")
                }),
                Err(why) => Err(format!("composited variable {name:?} fails to compile: {why}")),
            };
            match value {
                Ok(value) => _ = self.values.make_object().insert(name.clone(), value),
                Err(why) => self.failures[index] = Some(why),
            }
        }
    }

    /// Why an evaluation failed: for want of a variable, what that failed of.
    fn cause(&self, why: &str) -> String {
        let missing = why.strip_prefix("no such key: ");
        let index = missing.and_then(|name| self.variables.0.iter().position(|(n, _)| n == name));
        let failure = index.and_then(|index| self.failures[index].clone());
        failure.unwrap_or_else(|| why.to_owned())
    }
}

/// Whether a text has a name as a word of its own.
fn mentions(text: &str, name: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_inner) && !text[at + name.len()..].starts_with(is_inner)
    })
}

/// A declaration of what an expression comes to; data for what has no declaration.
fn declared(output: &Type) -> Declaration {
    let size_max = SIZE_MAX;
    match output {
        Type::Bool => Declaration::Bool,
        Type::Int => Declaration::Int,
        Type::Double => Declaration::Double,
        Type::String => Declaration::String { size_max },
        Type::Bytes => Declaration::Bytes { size_max },
        Type::Timestamp => Declaration::DateTime,
        Type::Duration => Declaration::Duration,
        Type::Object(object) => Declaration::Object(object.clone()),
        Type::List(items) => Declaration::list(declared(items), Merge::Atomic, size_max),
        Type::Map(pair) if matches!(pair.0, Type::String) => {
            Declaration::map(declared(&pair.1), size_max)
        }
        _ => Declaration::Dyn { size_max },
    }
}

fn text() -> Declaration {
    Declaration::String { size_max: SIZE_MAX }
}

fn texts() -> Declaration {
    Declaration::list(text(), Merge::Atomic, SIZE_MAX)
}

fn object<const N: usize>(name: &str, fields: [(&str, Declaration); N]) -> Declaration {
    let fields = fields.into_iter().map(|(name, declaration)| (name.into(), declaration));
    Declaration::Object(Object::new(name, fields))
}

/// What expressions know of a request: `AdmissionRequest` without its uid and its objects.
fn request() -> Declaration {
    let kind =
        object("kubernetes.GroupVersionKind", ["group", "version", "kind"].map(|f| (f, text())));
    let resource = object(
        "kubernetes.GroupVersionResource",
        ["group", "version", "resource"].map(|field| (field, text())),
    );
    let user = object(
        "kubernetes.UserInfo",
        [
            ("username", text()),
            ("uid", text()),
            ("groups", texts()),
            ("extra", Declaration::map(texts(), SIZE_MAX)),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Declaration::Bool),
            ("options", Declaration::Dyn { size_max: SIZE_MAX }),
        ],
    )
}

/// What expressions know of the namespace that a request is in.
fn namespace() -> Declaration {
    let labels = || Declaration::map(text(), SIZE_MAX);
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", text()),
            ("creationTimestamp", Declaration::DateTime),
            ("deletionGracePeriodSeconds", Declaration::Int),
            ("deletionTimestamp", Declaration::DateTime),
            ("generation", Declaration::Int),
            ("resourceVersion", text()),
            ("finalizers", texts()),
        ],
    );
    let condition = object(
        "kubernetes.NamespaceCondition",
        [
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", Declaration::DateTime),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let conditions = Declaration::list(condition, Merge::Atomic, SIZE_MAX);
    object(
        "kubernetes.Namespace",
        [
            ("metadata", metadata),
            ("spec", object("kubernetes.NamespaceSpec", [("finalizers", texts())])),
            (
                "status",
                object(
                    "kubernetes.NamespaceStatus",
                    [("conditions", conditions), ("phase", text())],
                ),
            ),
        ],
    )
}
