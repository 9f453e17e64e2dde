//! Random well-typed expressions, and what Pintle and others make of them.
//!
//! An expression that two do differently is looked at part by part, until the least part is found that
//! differs. Either that is a known fault of the other ([`known`]), and the part is replaced by its right
//! value and the rest is compared, or it is told.

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

/// The variables that expressions may use: name, type, and value as JSON.
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
