//! Random well-typed expressions, evaluated by Pintle and by other implementations of CEL.
//!
//! If two results differ, the parts of the expression are compared until the smallest differing
//! part is found. If that part shows a known deviation ([`known`]), the deviation is counted;
//! otherwise the difference is reported. Then Pintle's value replaces the part, and the comparison
//! of the expression around it continues.

mod agree;
mod evaluators;
mod known;
mod make;
mod plain;
mod rows;

pub use agree::{Judge, Tally};
pub use evaluators::{CelRust, Evaluator, Pintle, Rscel};
pub use known::{KNOWN, Known};
pub use make::{Made, Maker};
pub use plain::{Outcome, Plain, Type};

/// The variables of expressions: name, type, and value as JSON.
pub const VARIABLES: &[(&str, &str, &str)] = &[
    ("count", "int", "3"),
    ("name", "string", r#""web-0""#),
    ("text", "string", r#""é日 a""#),
    ("on", "bool", "true"),
    ("ratio", "double", "0.5"),
    ("ports", "list int", "[80, 443, 8080]"),
    ("hosts", "list string", r#"["a.example", "b.example", ""]"#),
    ("labels", "map string string", r#"{"app": "web", "tier": "front"}"#),
    ("limits", "map string int", r#"{"cpu": 2, "memory": 512}"#),
    ("nested", "list list int", "[[1, 2], [], [3]]"),
];
