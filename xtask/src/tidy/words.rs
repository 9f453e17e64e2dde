//! Words: names that were retired and must not come back, and the glossary, whose paths and names
//! exist.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::code::{lines_with, without_comments_and_literals};

const GLOSSARY: &str = "docs/glossary.md";

/// A word that the project no longer uses.
struct Retired {
    word: &'static str,
    /// The field's word to use instead.
    instead: &'static str,
    scope: Scope,
}

#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// As a part of an identifier, in snake case or camel case.
    Names,
    /// In identifiers, comments and literals: for words that are never right in a sentence, either.
    Anywhere,
}

const fn name(word: &'static str, instead: &'static str) -> Retired {
    Retired { word, instead, scope: Scope::Names }
}

const fn anywhere(word: &'static str, instead: &'static str) -> Retired {
    Retired { word, instead, scope: Scope::Anywhere }
}

/// The retired words. A rename adds the old word here, once no file has it.
const RETIRED: &[Retired] = &[
    anywhere("borne", "accepted, or a warning"),
    anywhere("guise", "compat"),
    anywhere("guises", "compat"),
    anywhere("outrun", "conflict: AllocationConflict"),
    anywhere("sees_as_kept", "StorageConverter"),
    name("affair", "the thing itself"),
    name("aloft", "in_flight"),
    name("deed", "verb, action, or change"),
    name("deeds", "verbs, actions, or changes"),
    name("heed", "handle, check, or report"),
    name("keeping", "StorageConverter, or stored"),
    name("kept", "stored, cached, or retained"),
    name("manner", "variant, or mode"),
    name("news", "update, or change"),
    name("said", "the name of the member, or the value"),
    name("shelf", "cache: EncodingCache"),
    name("told", "reported, listed, or configured"),
    name("turns", "rounds, iterations, or retry queues"),
    name("whereabouts", "location"),
];

/// Reports retired words in Rust files, and paths and names of the glossary that do not exist.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut offences = Vec::new();
    for path in super::files(root, "rs")? {
        // xtask names the words that it forbids, and upstream chose the generated names.
        if path.starts_with("xtask") || path.iter().any(|step| step == "generated") {
            continue;
        }
        let text = fs::read_to_string(root.join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        offences.extend(retired(&text).into_iter().map(|o| format!("{}{o}", path.display())));
    }
    let glossary = fs::read_to_string(root.join(GLOSSARY)).context(GLOSSARY)?;
    let missing = missing(&glossary, &|path| read(&root.join("crates").join(path)));
    offences.extend(missing.into_iter().map(|o| format!("{GLOSSARY}{o}")));
    Ok(offences)
}

/// The retired words of a Rust file: each offence begins with `:line: `.
pub(crate) fn retired(text: &str) -> Vec<String> {
    let code = without_comments_and_literals(text);
    let mut offences = Vec::new();
    for Retired { word, instead, scope } in RETIRED {
        let mut lines = lines_with_part(&code, word);
        if *scope == Scope::Anywhere {
            lines.extend(lines_with(text, word));
            lines.sort_unstable();
            lines.dedup();
        }
        let offence = |line| format!(":{line}: {word} is a retired word, write {instead}");
        offences.extend(lines.into_iter().map(offence));
    }
    offences
}

/// The lines with an identifier of which `word` is a part: `heed`, `heed_all`, `HeedAll`.
fn lines_with_part(code: &str, word: &str) -> Vec<usize> {
    let names = |line: &str| identifiers(line).any(|name| parts(name).any(|part| part == word));
    code.lines().enumerate().filter(|(_, line)| names(line)).map(|(at, _)| at + 1).collect()
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

/// The words of an identifier, in lower case.
fn parts(name: &str) -> impl Iterator<Item = String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        let begins = before == '_' || c.is_uppercase() && !before.is_uppercase();
        if c != '_' && begins {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    parts.into_iter()
}

/// Reports paths and names of the glossary that do not exist. `read` returns the text of a path
/// below `crates/`, if it exists.
pub(crate) fn missing(glossary: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut offences = Vec::new();
    // The text of the paths that the section names before its table.
    let mut section = String::new();
    for (at, line) in glossary.lines().enumerate() {
        let mut report = |offence: String| offences.push(format!(":{}: {offence}", at + 1));
        if line.starts_with('#') {
            section.clear();
        }
        let is_row = line.starts_with("| ");
        // The last column has the words of upstream.
        let own = if is_row { line.rsplitn(3, '|').nth(2).unwrap_or_default() } else { line };
        let terms: Vec<&str> = own.split('`').skip(1).step_by(2).collect();
        let (paths, names): (Vec<&str>, Vec<&str>) =
            terms.into_iter().partition(|term| is_path(term) || read(term).is_some());
        let mut text = String::new();
        for path in paths {
            match read(path) {
                Some(found) => text.push_str(&found),
                None => report(format!("crates/{path} does not exist")),
            }
        }
        if !is_row {
            section.push_str(&text);
            continue;
        }
        let text = if text.is_empty() { &section } else { &text };
        for name in names.into_iter().filter(|name| is_identifier(name)) {
            if lines_with(text, name).is_empty() {
                report(format!("{name} is not in the files that the row names"));
            }
        }
    }
    offences
}

/// True for a file or folder as the glossary writes it, from `crates/` on.
fn is_path(term: &str) -> bool {
    term.contains('/') && term.contains("src")
}

fn is_identifier(term: &str) -> bool {
    term.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The text of a file, or of all Rust files of a folder.
fn read(path: &PathBuf) -> Option<String> {
    if path.is_file() {
        return fs::read_to_string(path).ok();
    }
    if !path.is_dir() {
        return None;
    }
    let files = super::files(path, "rs").ok()?;
    Some(files.iter().filter_map(|file| fs::read_to_string(path.join(file)).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_word_is_reported_in_names_and_where_unambiguous_in_comments() {
        let check = |text: &str, expected: &[&str]| assert_eq!(retired(text), expected, "{text}");
        check("fn aloft() {}\n", &[":1: aloft is a retired word, write in_flight"]);
        check("a();\nstruct WritesAloft;\n", &[":2: aloft is a retired word, write in_flight"]);
        check("fn housekeeping() {}\nstruct Keep;\n", &[]);
        check("// keeping a lock\nfn a() { \"keeping\"; }\n", &[]);
        check("// a guise\n", &[":1: guise is a retired word, write compat"]);
        check("fn as_guise() {}\n", &[":1: guise is a retired word, write compat"]);
    }

    #[test]
    fn paths_and_names_of_the_glossary_must_exist() {
        let read = |path: &str| match path {
            "store/src/lib.rs" => Some("pub trait Follower {}".to_owned()),
            "store" => Some("struct Record;".to_owned()),
            _ => None,
        };
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(missing(text, &read), expected, "{text}");
        };
        check("| follower | is told | `Follower`, `store/src/lib.rs` | `Other` |\n", &[]);
        check(
            "\n| follower | is told | `Reader`, `store/src/lib.rs` | |\n",
            &[":2: Reader is not in the files that the row names"],
        );
        check("| record | a `Record` | `store` | |\n", &[]);
        check("| a | b | `store/src/a.rs` | |\n", &[":1: crates/store/src/a.rs does not exist"]);
        check("In `store/src/lib.rs`:\n\n| `Follower` | a | b |\n", &[]);
        check(
            "In `store/src/lib.rs`:\n\n## Next\n\n| `Follower` | a | b |\n",
            &[":5: Follower is not in the files that the row names"],
        );
    }
}
