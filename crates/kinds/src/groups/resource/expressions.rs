//! Expressions that select devices.

use std::sync::OnceLock;

use pintle_cel::{Declaration, Environment, Object, Type};
use pintle_meta::field::Error;

use crate::field::{Errors, Field};

const LENGTH_MAX: usize = 10 * 1024;
const COST_MAX: u64 = 1_000_000;
const TEXT_LENGTH_MAX: u64 = 64;
const DRIVER_LENGTH_MAX: u64 = 63;
const COUNT_MAX: u64 = 32;
const SELECTORS_MAX: usize = 32;

/// Checks the selectors of a request or of a class.
pub(super) fn check_selectors(holder: &Field<'_>, errors: &mut Errors) {
    super::named::each(holder, "selectors", SELECTORS_MAX, errors, &mut |selector, errors| {
        match selector.find("cel") {
            None => errors.push(selector.get("cel").required("")),
            Some(cel) => check(&cel.get("expression"), errors),
        }
    });
}

fn check(field: &Field<'_>, errors: &mut Errors) {
    let expression = field.text();
    if expression.len() > LENGTH_MAX {
        return errors.push(Error::too_long(&field.path(), LENGTH_MAX));
    }
    match environment().compile(expression) {
        Err(error) => {
            errors.push(field.invalid_as(expression, format!("compilation failed: {error}")));
        }
        Ok(program) => {
            if !matches!(program.output_type(), Type::Bool | Type::Dyn) {
                let output = program.output_type();
                let words = format!("must evaluate to bool or the unknown type, not {output}");
                errors.push(field.invalid_as(expression, words));
            } else if program.estimate().max > COST_MAX {
                errors.push(field.forbidden("too complex, exceeds cost limit"));
            }
        }
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
