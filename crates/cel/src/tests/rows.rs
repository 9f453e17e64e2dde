//! The rows and their comparison.

use std::fs;
use std::path::Path;

use pintle_value::{Value, json};

use super::schema::{declare, declare_root};
use super::show::show;
use crate::context::Context;
use crate::{Bindings, CompileError, Environment};

/// The expected outcome of a row, in comparable lines.
fn outcome_of_row(row: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for key in ["issues", "type", "min", "max", "value", "error", "cost"] {
        match row.get(key) {
            Some(Value::String(text)) => lines.push(format!("{key}: {text}")),
            Some(Value::Int(n)) => lines.push(format!("{key}: {n}")),
            Some(Value::Float(n)) => lines.push(format!("{key}: {}", *n as u64)),
            _ => {}
        }
    }
    lines
}

fn outcome(row: &Value, objects: &Value) -> Vec<String> {
    let text = |key: &str| row.get(key).and_then(Value::as_str);
    let mut environment = Environment::new();
    let object = text("on").map(|name| objects.get(name).expect("rows are on objects that exist"));
    if let Some(schema) = object.and_then(|object| object.get("schema")).or(row.get("schema")) {
        let is_root = row.get("root").and_then(Value::as_bool) == Some(true);
        let declaration = match is_root {
            true => declare_root(schema, "selfType"),
            false => declare(schema, "selfType").map(|(declaration, _)| declaration),
        };
        let declaration = declaration.expect("rows have schemas with types");
        let declaration = std::sync::Arc::new(declaration);
        environment = environment.with("self", declaration.clone()).with("oldSelf", declaration);
    }
    let program = match environment.compile(text("expr").unwrap_or_default()) {
        Ok(program) => program,
        Err(CompileError::Issues(issues)) => {
            let found = issues.to_string();
            // For some malformed texts only the failure is compared, because upstream recovers from
            // errors.
            let any = text("issues") == Some("Syntax error") && found.contains("Syntax error");
            return vec![if any {
                "issues: Syntax error".into()
            } else {
                format!("issues: {found}")
            }];
        }
        Err(CompileError::Constant(error, _)) => return vec![format!("error: PROGRAM {error}")],
        Err(error @ CompileError::Spent) => return vec![error.to_string()],
    };
    let mut lines = vec![format!("type: {}", program.output_type())];
    lines.push(format!("min: {}", as_in_rows(program.estimate().min)));
    lines.push(format!("max: {}", as_in_rows(program.estimate().max)));
    let limit = row.get("limit").and_then(Value::as_int).map_or(crate::COST_MAX, |n| n as u64);
    let mut context = Context::new(limit);
    let this = object.and_then(|object| object.get("self")).or(row.get("self"));
    let bindings = Bindings::new().with(this).with(this);
    let result = program.evaluate_in(&bindings, &mut context, |value, _| Ok(show(&value)));
    match result {
        Ok(value) => lines.push(format!("value: {value}")),
        Err(error) => lines.push(format!("error: {error}")),
    }
    lines.push(format!("cost: {}", context.cost()));
    lines
}

/// Numbers beyond signed 64 bits are parsed as floats.
fn as_in_rows(n: u64) -> u64 {
    i64::try_from(n).map_or(n as f64 as u64, |n| n as u64)
}

/// A constant that cannot be evaluated has no cost to compare.
fn comparable(mut lines: Vec<String>) -> Vec<String> {
    if lines.iter().any(|line| line.starts_with("error: PROGRAM")) {
        lines.retain(|line| line.starts_with("error"));
    }
    lines
}

#[test]
fn expressions_match_upstream() {
    // Another directory of rows can be given, for example of randomly generated ones.
    let folder = std::env::var_os("CEL_ROWS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rows"),
        std::path::PathBuf::from,
    );
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("rows").map(|f| f.expect("row").path()).collect();
    files.sort();
    let objects = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects.json");
    let objects = json::parse(&fs::read(objects).expect("objects")).expect("objects are JSON");
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("rows are text");
        for (number, line) in text.lines().enumerate() {
            let row = json::parse(line.as_bytes()).expect("rows are JSON");
            let (expected, found) =
                (comparable(outcome_of_row(&row)), comparable(outcome(&row, &objects)));
            count += 1;
            if expected != found {
                let location = format!("{}:{}", file.file_name().unwrap().display(), number + 1);
                let expression = row.get("expr").and_then(Value::as_str).unwrap_or_default();
                let all = |lines: Vec<String>, others: &[String]| -> Vec<String> {
                    lines.into_iter().filter(|l| !others.contains(l)).collect()
                };
                let (e, f) = (all(expected.clone(), &found), all(found, &expected));
                wrong.push(format!("{location}: {expression}\n  expected {e:?}\n  found    {f:?}"));
            }
        }
    }
    let shown = wrong.iter().take(2000).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {count} rows differ:\n{shown}", wrong.len());
}
