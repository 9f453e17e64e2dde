//! Expressions that select devices.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::OnceLock,
};

use pintle_cel::{Allowance, CompileError, Declaration, Environment, Object, Type};
use pintle_meta::field::Error;

use crate::field::{Errors, Field};

const LENGTH_MAX: usize = 10 * 1024;
const COST_MAX: u64 = 1_000_000;
const TEXT_LENGTH_MAX: u64 = 64;
const DRIVER_LENGTH_MAX: u64 = 63;
const COUNT_MAX: u64 = 32;
const SELECTORS_MAX: usize = 32;

/// The maximum size of all expressions of an object together: nodes, and bytes of patterns. A claim
/// can have 8,192 expressions, each of which may have 200,000 nodes. Upstream has no such limit.
const NODES_MAX: usize = 400_000;
const PATTERN_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Checks the selectors of one object.
pub(super) struct Selectors {
    /// What is left for the object's expressions.
    allowance: Allowance,
    /// The expressions that were checked, each with its error.
    checked: HashMap<String, Option<Error>>,
    /// Whether the allowance is spent and this is reported.
    is_over: bool,
}

impl Selectors {
    pub(super) fn new() -> Self {
        let allowance = Allowance::new(NODES_MAX, PATTERN_BYTES_MAX);
        Self { allowance, checked: HashMap::new(), is_over: false }
    }

    /// Checks the selectors of a request or of a class.
    pub(super) fn check(&mut self, holder: &Field<'_>, errors: &mut Errors) {
        super::named::each(holder, "selectors", SELECTORS_MAX, errors, &mut |selector, errors| {
            match selector.find("cel") {
                None => errors.push(selector.get("cel").required("")),
                Some(cel) => self.expression(&cel.get("expression"), errors),
            }
        });
    }

    fn expression(&mut self, field: &Field<'_>, errors: &mut Errors) {
        if self.is_over || errors.is_full() {
            return;
        }
        let expression = field.text();
        if expression.len() > LENGTH_MAX {
            return errors.push(Error::too_long(&field.path(), LENGTH_MAX));
        }
        let error = match self.checked.entry(expression.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if self.allowance.is_spent() => {
                self.is_over = true;
                return errors.push(field.forbidden(CompileError::Spent.to_string()));
            }
            Entry::Vacant(new) => new.insert(check(field, &mut self.allowance)),
        };
        if let Some(error) = error {
            errors.push(Error { field: field.path().to_string(), ..error.clone() });
        }
    }
}

/// Checks an expression.
fn check(field: &Field<'_>, allowance: &mut Allowance) -> Option<Error> {
    let expression = field.text();
    let program = environment().compile_within(allowance, expression);
    let output = match &program {
        Ok(program) => program.output_type(),
        Err(CompileError::Constant(_, output)) => output,
        Err(why) => {
            return Some(field.invalid_as(expression, format!("compilation failed: {why}")));
        }
    };
    if !matches!(output, Type::Bool | Type::Dyn) {
        let words = format!("must evaluate to bool or the unknown type, not {output}");
        return Some(field.invalid_as(expression, words));
    }
    match program {
        Err(why) => {
            let words = format!("program instantiation failed: {why}");
            Some(Error::internal(&field.path(), words))
        }
        Ok(program) if program.estimate().max > COST_MAX => {
            Some(field.forbidden("too complex, exceeds cost limit"))
        }
        Ok(_) => None,
    }
}

/// The environment of expressions: one device, with its attributes and capacities by domain and
/// name.
fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let by_domain =
            |value: Declaration| Declaration::map(Declaration::map(value, COUNT_MAX), COUNT_MAX);
        let attribute = Declaration::Dyn { size_max: TEXT_LENGTH_MAX };
        let quantity = Declaration::Dyn { size_max: 0 };
        let device = Object::new(
            "kubernetes.DRADevice",
            [
                ("driver".into(), Declaration::String { size_max: DRIVER_LENGTH_MAX }),
                ("allowMultipleAllocations".into(), Declaration::Bool),
                ("attributes".into(), by_domain(attribute)),
                ("capacity".into(), by_domain(quantity)),
            ],
        );
        Environment::new().with_bindings().with("device", Declaration::Object(device))
    })
}

#[cfg(test)]
mod tests;
