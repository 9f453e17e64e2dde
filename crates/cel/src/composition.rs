//! Named expressions that later ones use as `variables.name` (upstream:
//! `plugin/cel/composition.go`).
//!
//! A value is computed on first use and stored for later evaluations. Its cost is accounted
//! separately from that of the expression that uses it.
//!
//! Invariant: an expression can only refer to earlier ones, so there are no cycles.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use pintle_value::{Str, Value};

use crate::bindings::Bindings;
use crate::context::{Budget, COST_MAX, Context};
use crate::error::EvalError;
use crate::plan::NamedValues;
use crate::program::Program;
use crate::types::Type;
use crate::types::declaration::{Declaration, Object};
use crate::value::{Eval, to_json};

/// The maximum length of a chain of values that is evaluated recursively. Longer chains are
/// evaluated from their beginning, because the stack is limited.
const WAITING_MAX: usize = 8;

/// The maximum nesting of values that are built from other named values, so that walking them does
/// not exhaust the stack.
const NESTED_MAX: usize = 500;

/// Named expressions, in order.
#[derive(Debug, Default)]
pub struct Composition {
    names: Vec<Str>,
    /// The indices of each name, ascending: a name can be redefined.
    indices: HashMap<Str, Vec<usize>>,
    /// The compiled expressions, or the errors of those that do not compile.
    programs: Vec<Result<Program, String>>,
    /// The declared type of each value.
    types: Vec<Type>,
    /// The length of the longest chain of references from each expression.
    chains: Vec<usize>,
}

/// The values of one evaluation, or of several with the same bindings.
#[derive(Debug)]
pub struct Composed<'a> {
    composition: &'a Composition,
    values: RefCell<Vec<Option<Eval<'a>>>>,
    /// Whether the values of long chains have been evaluated.
    is_prepared: Cell<bool>,
    cost: Cell<u64>,
    /// The work of all values.
    work: Cell<u64>,
}

impl Composition {
    /// Adds an expression, which can refer to all earlier ones.
    pub fn add(&mut self, name: impl Into<Str>, program: Result<Program, String>) {
        let name = name.into();
        let used_values = program.iter().flat_map(Program::used_values);
        let chains =
            used_values.filter_map(|name| Some(self.chains[self.find(name, self.names.len())?]));
        let chain = 1 + chains.max().unwrap_or(0);
        self.indices.entry(name.clone()).or_default().push(self.names.len());
        self.names.push(name);
        self.types.push(program.as_ref().map_or(Type::Dyn, |p| stored_type(p.output_type())));
        self.programs.push(program);
        self.chains.push(chain);
    }

    /// The declaration of `variables` for the next expression; `type_name` is used in messages.
    ///
    /// Only the names that occur in the expression are declared; declaring all would take quadratic
    /// time and memory for many named expressions.
    pub fn declaration(&self, type_name: &'static str, expression: &str) -> Declaration {
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let fields = words.filter_map(|word| {
            let found = &self.types[self.find(word, self.names.len())?];
            Some((word.into(), Declaration::Typed(found.clone())))
        });
        Declaration::Composed(Object::of_identifiers(type_name, fields))
    }

    /// The compilation errors of the expressions, in order.
    pub fn problems(&self) -> impl Iterator<Item = Option<&str>> {
        self.programs.iter().map(|program| program.as_ref().err().map(String::as_str))
    }

    fn find(&self, name: &str, before: usize) -> Option<usize> {
        let indices = self.indices.get(name)?;
        let earlier = indices.partition_point(|index| *index < before);
        indices[..earlier].last().copied()
    }
}

/// The declared type of a named value; objects become `dyn`.
fn stored_type(found: &Type) -> Type {
    match found {
        Type::List(items) => Type::list(stored_type(items)),
        Type::Map(pair) => Type::map(stored_type(&pair.0), stored_type(&pair.1)),
        Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Timestamp
        | Type::Duration => found.clone(),
        _ => Type::Dyn,
    }
}

impl<'a> Composed<'a> {
    /// No values evaluated yet.
    pub fn new(composition: &'a Composition) -> Self {
        let values = RefCell::new(vec![None; composition.names.len()]);
        let (is_prepared, cost, work) = (Cell::new(false), Cell::new(0), Cell::new(0));
        Self { composition, values, is_prepared, cost, work }
    }

    /// Returns the cost of the values evaluated since the last call.
    pub fn take_cost(&self) -> u64 {
        self.cost.take()
    }

    /// The number of expressions: the index before which all names are known.
    pub(crate) fn end(&self) -> usize {
        self.composition.names.len()
    }

    /// Evaluates all values in order if a chain is too long for recursion.
    pub(crate) fn prepare(&self, bindings: &Bindings<'a>) {
        if self.is_prepared.replace(true) {
            return;
        }
        let long = self.composition.chains.iter().any(|chain| *chain > WAITING_MAX);
        for index in 0..if long { self.end() } else { 0 } {
            drop(self.value(index, bindings));
        }
    }

    fn value(&self, index: usize, bindings: &Bindings<'a>) -> Eval<'a> {
        if let Some(Some(known)) = self.values.borrow().get(index) {
            return known.clone();
        }
        let name = &self.composition.names[index];
        let value = match &self.composition.programs[index] {
            Err(why) => {
                let message = format!("composited variable {:?} fails to compile: {why}", &**name);
                Err(EvalError::new(message))
            }
            Ok(program) => self.evaluated(index, program, bindings).map_err(|why| {
                let name = &**name;
                EvalError::new(format!("composited variable {name:?} fails to evaluate: {why}"))
            }),
        };
        self.values.borrow_mut()[index] = Some(value.clone());
        value
    }

    fn evaluated(&self, index: usize, program: &'a Program, bindings: &Bindings<'a>) -> Eval<'a> {
        let mut context = Context::new(COST_MAX).after(self.work.get());
        let value = program.value(bindings, Some((self, index)), &mut context);
        self.cost.set(self.cost.get().saturating_add(context.cost()));
        let value = value.and_then(|value| {
            // A value that uses no other one is as deep as its expression.
            let is_combined = self.composition.chains[index] > 1;
            if is_combined && value.is_deeper_than(NESTED_MAX, &mut context)? {
                return Err(EvalError::new("values are nested too deeply"));
            }
            Ok(value)
        });
        self.work.set(self.work.get().saturating_add(context.worked()));
        value
    }
}

impl Program {
    /// Like [`Program::evaluate`], for an expression that uses `variables`.
    ///
    /// # Errors
    /// The evaluation error, with upstream's message.
    pub fn evaluate_composed<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        composed: &Composed<'a>,
        budget: &mut Budget,
    ) -> Result<Value, EvalError> {
        let mut context = budget.begin();
        composed.prepare(bindings);
        let value = self.value(bindings, Some((composed, composed.end())), &mut context);
        let result = value.and_then(|value| to_json(&value, &mut context));
        let enough = budget.spend(composed.take_cost());
        budget.end(context);
        if enough { result } else { Err(EvalError::cost()) }
    }
}

impl<'a> NamedValues<'a> for Composed<'a> {
    fn get(&self, name: &str, before: usize, bindings: &Bindings<'a>) -> Option<Eval<'a>> {
        Some(self.value(self.composition.find(name, before)?, bindings))
    }
}
