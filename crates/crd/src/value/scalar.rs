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
        let Some(x) = number(value) else { return };
        let format = rules.map_or("", |rules| rules.format.as_str());
        self.check_range(schema, format, value, "Checked");
        let Some(rules) = rules else { return };
        if let Some(factor) = rules.multiple_of {
            let factor = self.bound(schema, rules, value, (factor, "MultipleOf"));
            self.check_multiple(value, x, &factor);
        }
        if let Some(least) = rules.minimum {
            let least = self.bound(schema, rules, value, (least, "Minimum boundary"));
            let (exclusive, words) = (rules.exclusive_minimum, "should be greater than");
            if is_below(value, x, &least, exclusive) {
                self.beyond(value, words, exclusive, &least);
            }
        }
        if let Some(most) = rules.maximum {
            let most = self.bound(schema, rules, value, (most, "Maximum boundary"));
            let (exclusive, words) = (rules.exclusive_maximum, "should be less than");
            if is_above(value, x, &most, exclusive) {
                self.beyond(value, words, exclusive, &most);
            }
        }
    }

    /// Returns a bound as what it is compared with: upstream cuts the fraction off where the value
    /// is an integer, but refuses any value of a type that cannot hold the bound.
    fn bound(
        &mut self,
        schema: &Structural,
        rules: &Rules,
        value: &Value,
        (bound, name): (f64, &str),
    ) -> Value {
        let fits = self.check_range(schema, &rules.format, &Value::Float(bound), name);
        match value {
            Value::Int(_) if fits => Value::Int(bound as i64),
            _ => Value::Float(bound),
        }
    }

    fn check_multiple(&mut self, value: &Value, x: f64, factor: &Value) {
        let (is_positive, is_multiple) = match (value, factor) {
            (Value::Int(n), Value::Int(factor)) => (*factor > 0, n.checked_rem(*factor) == Some(0)),
            _ => {
                let factor = number(factor).unwrap_or_default();
                let quotient = if factor < 1.0 { 1.0 / factor * x } else { x / factor };
                (factor > 0.0, is_whole(quotient))
            }
        };
        if !is_positive {
            let words = format!("factor MultipleOf declared for {} must be positive", self.path);
            let words = format!("{words}: {}", plain(factor));
            self.findings.errors.push(Error::invalid(&self.field_path(), factor, words));
        } else if !is_multiple {
            self.invalid(value, format!("should be a multiple of {}", plain(factor)));
        }
    }

    fn beyond(&mut self, value: &Value, words: &str, exclusive: bool, bound: &Value) {
        let or_equal = if exclusive { "" } else { " or equal to" };
        self.invalid(value, format!("{words}{or_equal} {}", plain(bound)));
    }

    /// Refuses a number that its type and format cannot hold; as in upstream, the error names no
    /// field. Returns whether they can.
    fn check_range(
        &mut self,
        schema: &Structural,
        format: &str,
        value: &Value,
        name: &str,
    ) -> bool {
        let x = number(value).unwrap_or_default();
        let is_integer = schema.ty == Some(Type::Integer);
        let fits = match format {
            "int32" if is_integer => (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&x),
            "float" => x.abs() <= f64::from(f32::MAX),
            _ => !(is_integer && matches!(value, Value::Float(_)) && x.abs() >= 2f64.powi(63)),
        };
        let fits = fits && !(is_integer && x.fract() != 0.0);
        if !fits {
            let field_path = Path::new(if self.prefix.is_empty() { "<nil>" } else { self.prefix });
            let ty = schema.ty.map_or("number", Type::name);
            let format = match format {
                "" => "(default format)".to_owned(),
                format => format!("with format {format}"),
            };
            let words = format!("{name} value must be of type {ty} {format} in {}", self.path);
            self.findings.errors.push(Error::invalid(&field_path, &"".into(), words));
        }
        fits
    }
}

/// The largest quotient that can be whole: below it, a float holds each integer.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Whether a quotient is whole, apart from rounding.
fn is_whole(x: f64) -> bool {
    if x.abs() > WHOLE_MAX {
        return false;
    }
    if x.fract() == 0.0 {
        return true;
    }
    let nearest = x.round();
    let difference = (x - nearest).abs();
    difference < 1e-9 * x.abs().max(nearest.abs()).max(f64::MIN_POSITIVE)
}

fn is_below(value: &Value, x: f64, least: &Value, exclusive: bool) -> bool {
    match (value, least) {
        (Value::Int(n), Value::Int(least)) => n < least || (exclusive && n == least),
        _ => {
            let least = number(least).unwrap_or_default();
            x < least || (exclusive && x == least)
        }
    }
}

fn is_above(value: &Value, x: f64, most: &Value, exclusive: bool) -> bool {
    match (value, most) {
        (Value::Int(n), Value::Int(most)) => n > most || (exclusive && n == most),
        _ => {
            let most = number(most).unwrap_or_default();
            x > most || (exclusive && x == most)
        }
    }
}
