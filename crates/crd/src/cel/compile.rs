//! Compiles rules: when a definition is written, to report their errors, and again on first use.

use std::sync::Arc;

use pintle_cel::{Allowance, CompileError, Declaration, Environment, Program, Type as Output};
use pintle_meta::field::{Error, Errors};
use pintle_value::{Path, Str, Value};

use super::declare::{Declared, REQUEST_BYTES_MAX, declare};
use super::{Compiled, Message};
use crate::structural::{Additional, Expression, List, Structural, Type};

/// The limits of the estimated cost of one rule, and of all rules of a schema.
const RULE_COST_MAX: u64 = 10_000_000;
const SCHEMA_COST_MAX: u64 = 100_000_000;
/// The maximum size of all rules of a definition, and of those of a version on first use: nodes,
/// and bytes of patterns. Upstream has no such limit. Definitions with hundreds of rules have less
/// than 100,000 nodes.
const NODES_MAX: usize = 1_000_000;
const PATTERN_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The maximum number of expensive rules that are reported.
const EXPENSIVE_MAX: usize = 4;

/// The compiled rules of a schema and the schemas in it; absent if there are none.
#[derive(Default)]
pub(crate) struct Rules {
    pub(super) own: Vec<Compiled>,
    pub(super) items: Option<Box<Rules>>,
    /// Sorted by name.
    pub(super) properties: Vec<(Str, Rules)>,
    pub(super) additional: Option<Box<Rules>>,
}

impl Rules {
    /// Compiles the rules of a schema; `is_object` is true for the schema of a whole object.
    pub(crate) fn of(schema: &Structural, is_object: bool) -> Option<Self> {
        Self::within(&mut allowance(), schema, is_object)
    }

    fn within(allowance: &mut Allowance, schema: &Structural, is_object: bool) -> Option<Self> {
        let own = match schema.expressions.is_empty() {
            true => Vec::new(),
            false => compile(&schema.expressions, declare(schema, is_object), allowance),
        };
        let mut below = |schema: &Structural| Self::within(allowance, schema, schema.embedded);
        let properties = schema.properties.iter();
        let rules = Self {
            own,
            items: schema.items.as_deref().and_then(&mut below).map(Box::new),
            properties: properties.filter_map(|(n, s)| Some((n.clone(), below(s)?))).collect(),
            additional: schema.additional().and_then(below).map(Box::new),
        };
        let is_empty = rules.own.is_empty()
            && rules.items.is_none()
            && rules.properties.is_empty()
            && rules.additional.is_none();
        (!is_empty).then_some(rules)
    }
}

/// What the rules of one definition may take.
pub(crate) const fn allowance() -> Allowance {
    Allowance::new(NODES_MAX, PATTERN_BYTES_MAX)
}

/// The expressions with a rule, and their indices.
fn rules(expressions: &[Expression]) -> impl Iterator<Item = (usize, &Expression)> {
    expressions.iter().enumerate().filter(|(_, e)| !e.rule.trim().is_empty())
}

fn compile(
    expressions: &[Expression],
    declared: Option<Declared>,
    allowance: &mut Allowance,
) -> Vec<Compiled> {
    let Some(declared) = declared else { return Vec::new() };
    let declaration = Arc::new(declared.declaration);
    rules(expressions).map(|rule| compile_one(rule, &declaration, allowance)).collect()
}

fn compile_one(
    (index, expression): (usize, &Expression),
    declared: &Arc<Declaration>,
    allowance: &mut Allowance,
) -> Compiled {
    let is_optional = expression.optional_old_self == Some(true);
    let with_old = |old| Environment::new().with("self", declared.clone()).with("oldSelf", old);
    let environment = with_old(match is_optional {
        true => Arc::new(Declaration::Optional(declared.clone())),
        false => declared.clone(),
    });
    // Upstream's message for this failure of a rule, unlike that of a message expression, has one
    // more word.
    let program = self::program(&environment, &expression.rule, allowance).map_err(|why| {
        if why.starts_with("instantiation") { format!("program {why}") } else { why }
    });
    let program = program.and_then(|program| match program.output_type() {
        Output::Bool => Ok(program),
        _ => Err("cel expression must evaluate to a bool".to_owned()),
    });
    let given = &expression.message_expression;
    let message = (!given.trim().is_empty()).then(|| {
        let program = self::program(&environment, given, allowance)
            .map_err(|why| format!("messageExpression {why}"))?;
        if *program.output_type() != Output::String {
            return Err("messageExpression must evaluate to a string".to_owned());
        }
        let cost_max = program.estimate().max;
        let program = match is_optional && program.uses("oldSelf") {
            true => self::program(&with_old(declared.clone()), given, allowance).ok(),
            false => Some(program),
        };
        Ok(Message { cost_max, program })
    });
    let uses_old_self = program.as_ref().is_ok_and(|program| program.uses("oldSelf"));
    Compiled { index, program, message, uses_old_self }
}

fn program(
    environment: &Environment,
    expression: &str,
    allowance: &mut Allowance,
) -> Result<Program, String> {
    environment.compile_within(allowance, expression).map_err(|error| match error {
        CompileError::Constant(error, _) => format!("instantiation failed: {error}"),
        error => format!("compilation failed: {error}"),
    })
}

/// Validates the rules of a version's schema. Rules of parts with other errors (`known`) are
/// skipped. If the rules are `unchanged`, only their total cost is limited.
pub(crate) fn validate(
    schema: &Structural,
    unchanged: bool,
    known: &[Error],
    path: &Path,
    allowance: &mut Allowance,
) -> Errors {
    let mut broken: Vec<&str> = known.iter().map(|error| &*error.field).collect();
    broken.sort_unstable();
    let (errors, expensive) = (Errors::new(), Vec::new());
    let mut checker =
        Checker { errors, broken, unchanged, allowance, is_over: false, total: 0, expensive };
    checker.schema(schema, true, path, &Repetition { cardinality: Some(1), uncorrelatable: None });
    if checker.total > SCHEMA_COST_MAX {
        let words = "contributed to estimated rule cost total exceeding cost limit for entire \
                     OpenAPIv3 schema";
        let expensive = checker.expensive.iter();
        checker.errors.extend(expensive.map(|(_, path)| Error::forbidden(path, words)));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let words = too_expensive(what, checker.total, SCHEMA_COST_MAX);
        checker.errors.push(Error::forbidden(path, words));
    }
    checker.errors
}

struct Checker<'e> {
    errors: Errors,
    /// The paths of other errors of the schema, sorted.
    broken: Vec<&'e str>,
    unchanged: bool,
    /// What is left for the rules of the definition.
    allowance: &'e mut Allowance,
    /// Whether the allowance is spent and this is reported.
    is_over: bool,
    total: u64,
    expensive: Vec<(u64, Path)>,
}

/// How often values of a schema can occur in an object, as far as known.
struct Repetition {
    /// The maximum number, if bounded.
    cardinality: Option<u64>,
    /// The outermost schema in which old values cannot be correlated.
    uncorrelatable: Option<Path>,
}

impl Checker<'_> {
    fn schema(
        &mut self,
        schema: &Structural,
        is_object: bool,
        path: &Path,
        repetition: &Repetition,
    ) {
        if self.errors.is_full() || self.is_over {
            return;
        }
        self.rules(schema, is_object, path, repetition);
        let rules = schema.rules.as_deref();
        let count = |given: Option<i64>| given.map(|given| u64::try_from(given).unwrap_or(0));
        let within = match (schema.ty, schema.additional.as_deref()) {
            (Some(Type::Object), Some(Additional::Schema(_) | Additional::Any(_))) => {
                count(rules.and_then(|rules| rules.max_properties))
            }
            (Some(Type::Object), None) => Some(1),
            (Some(Type::Array), _) => count(rules.and_then(|rules| rules.max_items)),
            _ => None,
        };
        let cardinality = repetition.cardinality.zip(within).map(|(a, b)| a.saturating_mul(b));
        let inside = Repetition { cardinality, uncorrelatable: repetition.uncorrelatable.clone() };
        if let Some(below) = schema.additional() {
            self.schema(below, below.embedded, &path.field("additionalProperties"), &inside);
        }
        for (name, below) in &schema.properties {
            let path = path.field("properties").key(name);
            self.schema(below, below.embedded, &path, &inside);
        }
        if let Some(below) = &schema.items {
            let lost = !matches!(schema.list, List::Map(_));
            let uncorrelatable = inside.uncorrelatable.or_else(|| lost.then(|| path.clone()));
            let inside = Repetition { cardinality, uncorrelatable };
            self.schema(below, below.embedded, &path.field("items"), &inside);
        }
    }

    fn rules(
        &mut self,
        schema: &Structural,
        is_object: bool,
        path: &Path,
        repetition: &Repetition,
    ) {
        if schema.expressions.is_empty() || !self.is_sound(path) {
            return;
        }
        let at = path.field("x-kubernetes-validations");
        let Some(declared) = declare(schema, is_object) else {
            let words = "internal error: failed to retrieve type information for \
                         x-kubernetes-validations";
            return self.errors.push(Error::internal(&at, words));
        };
        let most = REQUEST_BYTES_MAX / (declared.size_min + 1);
        let cardinality = repetition.cardinality.unwrap_or(most);
        let declaration = Arc::new(declared.declaration);
        for (index, expression) in rules(&schema.expressions) {
            let at = at.index(index);
            if self.errors.is_full() {
                return;
            }
            if self.allowance.is_spent() {
                self.is_over = true;
                let words = CompileError::Spent.to_string();
                return self.errors.push(Error::forbidden(&at.field("rule"), words));
            }
            let compiled = compile_one((index, expression), &declaration, self.allowance);
            self.rule(expression, &compiled, cardinality, &at, repetition);
        }
    }

    /// Whether neither the schema at the path nor one in it has errors.
    fn is_sound(&self, path: &Path) -> bool {
        let first = self.broken.partition_point(|field| *field < path.as_str());
        !self.broken.get(first).is_some_and(|field| field.starts_with(path.as_str()))
    }

    fn rule(
        &mut self,
        expression: &Expression,
        compiled: &Compiled,
        cardinality: u64,
        path: &Path,
        repetition: &Repetition,
    ) {
        let at = path.field("rule");
        match &compiled.program {
            Ok(program) => {
                let cost = program.estimate().max.saturating_mul(cardinality);
                self.cost("estimated rule cost", cost, &at);
            }
            Err(why) => {
                self.errors.push(Error::invalid_shown(&at, expression.shown(), why.clone()));
            }
        }
        self.message(expression, compiled, &path.field("messageExpression"));
        if compiled.uses_old_self {
            if let Some(outer) = &repetition.uncorrelatable {
                let words = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                     {outer}"
                );
                self.errors.push(Error::invalid(&at, &expression.rule.clone().into(), words));
            }
        } else if let Some(given) = expression.optional_old_self {
            let words = "may not be set if oldSelf is not used in rule";
            let at = path.field("optionalOldSelf");
            self.errors.push(Error::invalid(&at, &Value::Bool(given), words));
        }
    }

    fn message(&mut self, expression: &Expression, compiled: &Compiled, at: &Path) {
        let Some(message) = compiled.message.as_ref().filter(|_| compiled.program.is_ok()) else {
            return;
        };
        match message {
            Ok(message) => {
                self.cost("estimated messageExpression cost", message.cost_max, at);
            }
            Err(why) => {
                self.errors.push(Error::invalid_shown(at, expression.shown(), why.clone()));
            }
        }
    }

    fn cost(&mut self, what: &str, cost: u64, path: &Path) {
        if cost > RULE_COST_MAX && !self.unchanged {
            let words = too_expensive(what, cost, RULE_COST_MAX);
            self.errors.push(Error::forbidden(path, words));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_COST_MAX / 100 {
            self.expensive.push((cost, path.clone()));
            self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(EXPENSIVE_MAX);
        }
    }
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
