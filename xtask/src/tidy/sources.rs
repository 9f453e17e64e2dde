//! Rust files: their sizes, their names, and forbidden words.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::code::{functions, lines_with, without_comments_and_literals, without_tests};

const LINES_MAX: usize = 800;

const FUNCTION_LINES_MAX: usize = 70;

/// Names without a meaning.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "misc", "util", "utilities", "utils"];

/// Words for unfinished work, in code or comments.
const UNDONE: &[&str] = &["FIXME", "TODO", "XXX"];

/// Forbidden in code outside tests.
const FORBIDDEN: &[&str] = &[".unwrap()", "todo!", "unimplemented!", "dbg!"];

/// Forbidden in libraries.
const PRINTING: &[&str] = &["println!", "print!", "eprintln!", "eprint!"];

/// Forbidden in the pure core.
const CLOCKS: &[&str] = &["SystemTime", "Instant"];

const PURE: &[&str] = &[
    "crates/apply/src/",
    "crates/cel/src/",
    "crates/meta/src/",
    "crates/schema/src/",
    "crates/value/src/",
];

/// Returns the offences in the Rust files.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut offences = Vec::new();
    for path in super::files(root, "rs")? {
        let text = fs::read_to_string(root.join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let path = path.to_string_lossy().replace('\\', "/");
        offences.extend(check_file(&path, &text).into_iter().map(|o| format!("{path}{o}")));
    }
    Ok(offences)
}

/// Returns the offences in one file: each begins with `:line: `, or `: ` for the whole file.
pub(crate) fn check_file(path: &str, text: &str) -> Vec<String> {
    let mut offences = Vec::new();
    let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    if let Some(name) = parts.iter().find(|p| EMPTY_NAMES.contains(p)) {
        offences.push(format!(": {name} is a name that says nothing"));
    }
    if path.ends_with("/lib.rs") && !text.starts_with("//! ") {
        offences.push(": a crate begins with what it is and what it must not know".to_owned());
    }
    let is_test = is_test(&parts);
    let is_tool = is_tool(path);
    let is_generated = parts.contains(&"generated");
    if !is_test && !is_generated && text.lines().count() > LINES_MAX {
        offences.push(format!(": more than {LINES_MAX} lines"));
    }
    // xtask names the words that it forbids.
    if !path.starts_with("xtask/") {
        for word in UNDONE {
            offences.extend(at(lines_with(text, word), word));
        }
        if !is_test {
            offences.extend(at(lines_with(text, "../shared"), "../shared"));
        }
    }

    let code = without_comments_and_literals(text);
    for name in EMPTY_NAMES {
        let lines = lines_with(&code, &format!("mod {name}"));
        offences.extend(at(lines, &format!("mod {name}")));
    }
    if is_test {
        return offences;
    }
    let code = without_tests(&code);
    let long = functions(&code)
        .into_iter()
        .filter(|(_, lines)| *lines > FUNCTION_LINES_MAX && !is_generated);
    offences.extend(long.map(|(at, lines)| format!(":{at}: a function of {lines} lines")));
    let mut forbidden: Vec<&str> = FORBIDDEN.to_vec();
    if !is_tool {
        forbidden.extend(PRINTING);
    }
    if PURE.iter().any(|folder| path.starts_with(folder)) {
        forbidden.extend(CLOCKS);
    }
    for word in forbidden {
        offences.extend(at(lines_with(&code, word), word));
    }
    offences
}

fn at(lines: Vec<usize>, word: &str) -> impl Iterator<Item = String> {
    lines.into_iter().map(move |line| format!(":{line}: {word}"))
}

/// Tests, and the code that only tests and measurements use.
fn is_test(parts: &[&str]) -> bool {
    let folders = ["tests", "benches", "examples"];
    let workspaces = ["fuzz", "differential"];
    parts.iter().any(|p| folders.contains(p))
        || parts.first().is_some_and(|p| workspaces.contains(p))
}

/// Programs, which may print.
fn is_tool(path: &str) -> bool {
    let tools = ["xtask/", "bench/", "apiscript/", "crates/pintle/"];
    tools.iter().any(|t| path.starts_with(t))
        || path.ends_with("/build.rs")
        || path.ends_with("/main.rs")
}
