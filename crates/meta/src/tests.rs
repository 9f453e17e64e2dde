//! Rows of upstream's results: `{"in": …, "out": …}`, or `"error"` where upstream rejects the text.

use std::fmt::Display;

use pintle_value::json;

/// Checks that `read` turns each row's text into upstream's result.
pub(crate) fn check<T: Display, E: Display>(rows: &str, read: impl Fn(&str) -> Result<T, E>) {
    let mut failures = Vec::new();
    for line in rows.lines() {
        let row = json::parse(line.as_bytes()).expect("rows are JSON");
        let text = |member: &str| row.str_at(&[member]);
        let expected = match text("error") {
            Some(error) => Err(error.to_owned()),
            None => Ok(text("out").expect("a row has an outcome").to_owned()),
        };
        let found = read(text("in").expect("a row has a text"));
        let found = found.map(|t| t.to_string()).map_err(|e| e.to_string());
        if found != expected {
            failures.push(format!("{line}\n  found {found:?}"));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
