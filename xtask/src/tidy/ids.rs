//! Ids of requirements: each that a script, a test or a comment cites has a row in
//! `docs/requirements.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

const LIST: &str = "docs/requirements.md";

/// Where ids are cited, by the ends of names.
const CITING: [&str; 7] = ["rs", "yaml", "go", "py", "mjs", "java", "md"];

/// Reports cited ids without a row, and rows that occur twice.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let list = fs::read_to_string(root.join(LIST)).context(LIST)?;
    let mut rows = BTreeSet::new();
    let mut offences = Vec::new();
    for row in list.lines().filter_map(row) {
        if !rows.insert(row) {
            offences.push(format!("{LIST}: {row} has two rows"));
        }
    }
    for extension in CITING {
        for path in super::files(root, extension)? {
            let text = fs::read_to_string(root.join(&path))
                .with_context(|| format!("cannot read {}", path.display()))?;
            let unknown = unknown(&text, &rows);
            offences.extend(
                unknown.iter().map(|id| format!("{}: {id} has no row in {LIST}", path.display())),
            );
        }
    }
    Ok(offences)
}

/// The id of a row.
fn row(line: &str) -> Option<&str> {
    line.strip_prefix("| ")?.split(' ').next().filter(|word| ids(word).next() == Some(*word))
}

/// The ids in a text that have no row, although their family has rows.
pub(crate) fn unknown<'a>(text: &'a str, rows: &BTreeSet<&str>) -> BTreeSet<&'a str> {
    let is_family = |family: &str| {
        rows.iter().any(|row| row.strip_prefix(family).is_some_and(|rest| rest.starts_with('-')))
    };
    let families: BTreeSet<&str> = ids(text).map(family).collect();
    let known: BTreeSet<&str> = families.into_iter().filter(|family| is_family(family)).collect();
    ids(text).filter(|id| known.contains(family(id)) && !rows.contains(id)).collect()
}

fn family(id: &str) -> &str {
    id.split('-').next().unwrap_or_default()
}

/// The ids in a text: two to six capital letters, a hyphen, two or more digits.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.split(move |c| !is_part(c)).filter(|word| {
        let Some((family, number)) = word.split_once('-') else { return false };
        (2..=6).contains(&family.len())
            && family.bytes().all(|b| b.is_ascii_uppercase())
            && number.len() >= 2
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}
