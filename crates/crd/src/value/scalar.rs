//! Validation of texts and numbers.

use pintle_meta::field::Error;
use pintle_meta::quote::plain;
use pintle_value::Value;

use super::{Path, Validator, format};
use crate::structural::{Rules, Structural, Type, number};

impl Validator<'_> {
    pub(super) fn text(&mut self, schema: &Structural, rules: Option<&Rules>, text: &str) {
        let Some(rules) = rules else { return };
        self.check_length_and_pattern(rules, text);
        self.findings.checks += 1;
        if let Some(known) = format::of(schema) {
            self.findings.checks += 1;
            if !known.holds(text) {
                self.wrong_type(&rules.format, text);
            }
        }
    }

    /// As in upstream, only the first error is reported.
    fn check_length_and_pattern(&mut self, rules: &Rules, text: &str) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = rules.max_length.filter(|most| length > *most) {
            let bound = usize::try_from(most).unwrap_or(0);
            let mut error = Error::too_long(&self.field_path(), bound);
            if most < 0 {
                error.detail = "value is too long".to_owned();
            }
            self.findings.errors.push(error);
        } else if let Some(least) = rules.min_length.filter(|least| length < *least) {
            self.invalid(&text.into(), format!("should be at least {least} chars long"));
        } else if let Some(pattern) = &rules.pattern {
            match pattern.matches(text) {
                Ok(true) => {}
                Ok(false) => {
                    self.invalid(&text.into(), format!("should match '{}'", pattern.text()));
                }
                Err(why) => {
                    let pattern = pattern.text();
                    let words = format!("should match '{pattern}, but pattern is invalid: {why}'");
                    self.invalid(&text.into(), words);
                }
            }
        }
    }

    pub(super) fn number(&mut self, schema: &Structural, rules: Option<&Rules>, value: &Value) {
        self.findings.checks += 1;
        let (Some(rules), Some(x)) = (rules, number(value)) else { return };
        self.check_range(schema, rules, value, x);
        if let Some(factor) = rules.multiple_of {
            let whole = match value {
                Value::Int(n) if factor.fract() == 0.0 && factor >= 1.0 => n % (factor as i64) == 0,
                _ if factor < 1.0 => is_whole(1.0 / factor * x),
                _ => is_whole(x / factor),
            };
            if !whole {
                self.invalid(value, format!("should be a multiple of {}", shown(factor, value)));
            }
        }
        if let Some(least) = rules.minimum {
            let (exclusive, words) = (rules.exclusive_minimum, "should be greater than");
            if x < least || (exclusive && x == least) {
                self.beyond(value, words, exclusive, least);
            }
        }
        if let Some(most) = rules.maximum {
            let (exclusive, words) = (rules.exclusive_maximum, "should be less than");
            if x > most || (exclusive && x == most) {
                self.beyond(value, words, exclusive, most);
            }
        }
    }

    fn beyond(&mut self, value: &Value, words: &str, exclusive: bool, bound: f64) {
        let or_equal = if exclusive { "" } else { " or equal to" };
        self.invalid(value, format!("{words}{or_equal} {}", shown(bound, value)));
    }

    /// Refuses a number that its format cannot hold; as in upstream, the error names no field.
    fn check_range(&mut self, schema: &Structural, rules: &Rules, value: &Value, x: f64) {
        let is_integer = schema.ty == Some(Type::Integer);
        let fits = match rules.format.as_str() {
            "int32" if is_integer => (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&x),
            "float" => x.abs() <= f64::from(f32::MAX),
            _ => !(is_integer && matches!(value, Value::Float(_)) && x.abs() >= 2f64.powi(63)),
        };
        if !fits || (is_integer && x.fract() != 0.0) {
            let field_path = Path::new(if self.prefix.is_empty() { "<nil>" } else { self.prefix });
            let ty = schema.ty.map_or("number", Type::name);
            let format = match rules.format.as_str() {
                "" => "(default format)".to_owned(),
                format => format!("with format {format}"),
            };
            let words = format!("Checked value must be of type {ty} {format} in {}", self.path);
            self.findings.errors.push(Error::invalid(&field_path, &"".into(), words));
        }
    }
}

/// Whether a quotient is whole, apart from rounding.
fn is_whole(x: f64) -> bool {
    if x.fract() == 0.0 {
        return true;
    }
    let nearest = x.round();
    let difference = (x - nearest).abs();
    difference < 1e-9 * x.abs().max(nearest.abs()).max(f64::MIN_POSITIVE)
}

/// A bound as Go prints it: as the kind of number that it is compared with.
fn shown(bound: f64, value: &Value) -> String {
    match value {
        Value::Int(_) if bound.fract() == 0.0 => plain(&Value::Int(bound as i64)),
        _ => plain(&Value::Float(bound)),
    }
}
