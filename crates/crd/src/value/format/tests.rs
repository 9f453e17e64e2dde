use pintle_value::json;

use super::*;

/// Upstream's results for texts of each format.
const ROWS: &str = include_str!("../../../tests/formats.jsonl");

#[test]
fn formats_match_upstream() {
    let mut wrong = Vec::new();
    for line in ROWS.lines() {
        let row = json::parse(line.as_bytes()).expect("JSON");
        let text = |key: &str| row.str_at(&[key]).unwrap_or_else(|| panic!("{line}"));
        let format = named(text("format")).unwrap_or_else(|| panic!("{line}"));
        if Some(format.holds(text("text"))) != row.get("holds").and_then(|holds| holds.as_bool()) {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Upstream ignores dashes in names.
#[test]
fn names_may_have_dashes() {
    for (name, is_known) in [("date-time", true), ("datetime", true), ("ip-v4", true), ("x", false)]
    {
        assert_eq!(named(name).is_some(), is_known, "{name}");
    }
}
