//! A total order of values, as structured-merge-diff sorts the paths of list items: numbers,
//! strings, booleans, lists, objects, null. In this order, 1 and 1.0 are equal.

use std::borrow::Borrow;
use std::cmp::Ordering;

use crate::Value;

/// Compares two values.
pub fn values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => floats(*a, *b),
        (Value::Int(a), Value::Float(b)) => int_and_float(*a, *b),
        (Value::Float(a), Value::Int(b)) => int_and_float(*b, *a).reverse(),
        (Value::String(a), Value::String(b)) => a.as_str().cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| values(a, b)).find(|o| o.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Raw(a), Value::Raw(b)) => a.cmp(b),
        (Value::Object(a), Value::Object(b)) => members(a.as_slice(), b.as_slice()),
        _ => type_order(a).cmp(&type_order(b)),
    }
}

/// A value as a key of sorted sets and maps, for example to find duplicates.
#[derive(Clone, Copy, Debug)]
pub struct Ordered<V>(pub V);

impl<V: Borrow<Value>> Ord for Ordered<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        values(self.0.borrow(), other.0.borrow())
    }
}

impl<V: Borrow<Value>> PartialOrd for Ordered<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: Borrow<Value>> PartialEq for Ordered<V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<V: Borrow<Value>> Eq for Ordered<V> {}

/// Whether two values are equal in this order.
pub fn same(a: &Value, b: &Value) -> bool {
    values(a, b).is_eq()
}

/// Compares members that are sorted by name.
pub fn members<N: AsRef<str>, V: Borrow<Value>>(mut a: &[(N, V)], mut b: &[(N, V)]) -> Ordering {
    while let ([(name_a, value_a), rest_a @ ..], [(name_b, value_b), rest_b @ ..]) = (a, b) {
        let names = name_a.as_ref().cmp(name_b.as_ref());
        let order = names.then_with(|| values(value_a.borrow(), value_b.borrow()));
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.len().cmp(&b.len())
}

/// Compares an integer as a float, as upstream does. If it is equal to the float only because it is
/// rounded, the exact values decide: otherwise two integers would be equal to one float but not to
/// each other, and a sort may panic.
#[expect(clippy::cast_precision_loss, reason = "the exact values are compared next")]
fn int_and_float(a: i64, b: f64) -> Ordering {
    floats(a as f64, b).then_with(|| i128::from(a).cmp(&(b as i128)))
}

fn floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// The position of a value's type in the order.
const fn type_order(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) | Value::Raw(_) => 4,
        Value::Null => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_large_numbers_is_total() {
        let two_to_63 = 9_223_372_036_854_775_808.0;
        let mut numbers: Vec<Value> = (0..64).map(|n| Value::Int(i64::MAX - n)).collect();
        numbers.extend((0..64).map(|n| Value::Int(i64::MIN + n)));
        numbers.extend([two_to_63, -two_to_63, 0.5, 1e300].map(Value::Float));
        for a in &numbers {
            for b in &numbers {
                assert_eq!(values(a, b), values(b, a).reverse(), "{a:?} {b:?}");
                for c in numbers.iter().filter(|c| values(a, b) == values(b, c)) {
                    assert_eq!(values(a, c), values(a, b), "{a:?} {b:?} {c:?}");
                }
            }
        }
        assert!(same(&Value::Int(1), &Value::Float(1.0)));
    }
}
