//! The values of an `enum`.

use pintle_value::{Value, order};

/// The allowed values, in the order of the schema, and a sorted index: a schema may allow as many
/// values as an object has.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    values: Vec<Value>,
    /// The positions of the values, in their order.
    sorted: Vec<usize>,
}

impl Choices {
    pub(crate) fn new(values: &[Value]) -> Self {
        let mut sorted: Vec<usize> = (0..values.len()).collect();
        sorted.sort_by(|a, b| order::values(&values[*a], &values[*b]));
        Self { values: values.to_vec(), sorted }
    }

    /// Whether the value is an allowed one. A number may be written with a fraction or without.
    pub(crate) fn allow(&self, value: &Value) -> bool {
        let is_same = |allowed: &Value| match (allowed, value) {
            (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => *a as f64 == *b,
            _ => allowed == value,
        };
        let first =
            self.sorted.partition_point(|at| order::values(&self.values[*at], value).is_lt());
        let equal = self.sorted[first..].iter().map(|at| &self.values[*at]);
        equal.take_while(|allowed| order::same(allowed, value)).any(is_same)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values in the order of the schema.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Value> {
        self.values.iter()
    }
}
