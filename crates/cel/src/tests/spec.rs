//! The specification's own tests (<https://github.com/google/cel-spec>, `tests/simple/testdata` at
//! 508bd98efda4), as far as Kubernetes' environment supports them: no messages, and only its own
//! extensions. If Kubernetes' result differs, the row has it, and `not` says why.

use std::collections::BTreeSet;

use pintle_value::{Value, json};

use super::show::show;
use crate::context::Context;
use crate::{Bindings, COST_MAX, CompileError, Declaration, Environment, Merge, SIZE_MAX};

const ROWS: &str = include_str!("../../tests/spec.jsonl");

/// The declaration of a variable by its type name.
fn declare(t: &str) -> Declaration {
    let inner = |name: &str| t.strip_prefix(name)?.strip_suffix(')');
    match t {
        "bool" => Declaration::Bool,
        "int" => Declaration::Int,
        "double" => Declaration::Double,
        "string" => Declaration::String { size_max: SIZE_MAX },
        "bytes" => Declaration::Bytes { size_max: SIZE_MAX },
        _ => match (inner("list("), inner("map(string, ")) {
            (Some(items), _) => Declaration::list(declare(items), Merge::Atomic, SIZE_MAX),
            (_, Some(values)) => Declaration::map(declare(values), SIZE_MAX),
            _ => Declaration::Dyn { size_max: SIZE_MAX },
        },
    }
}

/// The value or the error, and the type.
fn outcome(row: &Value) -> (Result<String, String>, String) {
    let expression = row.str_at(&["expr"]).expect("rows have expressions");
    let empty = pintle_value::Map::new();
    let variables = row.get("vars").and_then(Value::as_object).unwrap_or(&empty);
    let mut environment = Environment::new();
    let mut bindings = Bindings::new();
    for (name, variable) in variables.iter() {
        let t = variable.str_at(&["type"]).expect("variables have types");
        environment = environment.with(name.as_str(), declare(t));
        bindings = bindings.with(variable.get("value"));
    }
    let program = match environment.compile(expression) {
        Ok(program) => program,
        Err(CompileError::Issues(issues)) => return (Err(issues.to_string()), String::new()),
        Err(error) => return (Err(error.to_string()), String::new()),
    };
    let mut context = Context::new(COST_MAX);
    let result = program.evaluate_in(&bindings, &mut context, |value, _| Ok(show(&value)));
    (result.map_err(|error| error.to_string()), program.output_type().to_string())
}

#[test]
fn expressions_match_the_specification() {
    let mut wrong = Vec::new();
    let mut reasons = BTreeSet::new();
    let (mut file, mut count) = (String::new(), 0);
    for line in ROWS.lines() {
        let row = json::parse(line.as_bytes()).expect("rows are JSON");
        if let Some(name) = row.str_at(&["file"]) {
            file = name.to_owned();
            continue;
        }
        count += 1;
        let (result, t) = outcome(&row);
        let is_right = match (&result, row.str_at(&["value"])) {
            (Ok(found), Some(expected)) => found == expected,
            (Err(_), Some(_)) => false,
            (Err(_), None) => true,
            // For rows that are not evaluated, only the type is compared.
            (Ok(_), None) => row.get("error").is_none(),
        };
        if !is_right || row.str_at(&["type"]).is_some_and(|expected| expected != t) {
            wrong.push(format!("{file}: {line}\n  found {result:?}: {t}"));
        }
        if let Some(reason) = row.str_at(&["not"]) {
            reasons.insert(reason.to_owned());
        }
    }
    assert!(wrong.is_empty(), "{} of {count} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    let known: BTreeSet<String> = WHY.iter().map(|(reason, _)| (*reason).to_owned()).collect();
    assert_eq!(reasons, known, "the reasons of the rows are those that are explained");
}

/// The reasons why Kubernetes' result differs from the specification. Each such result is
/// upstream's.
const WHY: &[(&str, &str)] = &[
    ("checked", "the row is for evaluation without type checks; Kubernetes checks all expressions"),
    ("format", "texts are formatted as in version 2 of the string library"),
    ("homogeneous", "literals of lists and maps hold one type"),
    ("key", "a value that cannot be a key is refused when the expression is compiled"),
    ("mapped", "IPv4 addresses in the form of IPv6 are refused"),
    ("names", "there are no containers, and names resolve as in cel-go v0.26"),
    ("optional", "cel-go v0.26 finds no field in null, or in a value that is not a map"),
    ("quoted", "there are no names in backticks"),
    ("repeated", "of repeated keys the last counts, in all of cel-go"),
    ("reverse", "only version 3 of the string library and later ones can reverse texts"),
    ("start", "cel-go v0.26 finds nothing behind a text's end; later versions make that an error"),
];
