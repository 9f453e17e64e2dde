//! The documents of a file, each with its source text, so that an unchanged document is written as
//! it was.

use anyhow::Result;
use pintle_value::{Value, json, yaml};

/// A document.
#[derive(Debug, PartialEq)]
pub(super) struct Document {
    /// The parsed document.
    pub tree: Value,
    /// The source text with comments, without separators; `None` for JSON, and if the texts of
    /// several documents could not be separated.
    pub text: Option<String>,
}

/// Parses the documents of JSON or YAML; empty documents are dropped.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Document>> {
    // JSON is YAML, except for what Go's JSON reader tolerates.
    if let Ok(tree) = json::parse(bytes) {
        return Ok(vec![Document { tree, text: None }]);
    }
    let trees: Vec<Value> = yaml::parse_documents(bytes)?;
    let trees: Vec<Value> = trees.into_iter().filter(|tree| !tree.is_null()).collect();
    let texts = texts(bytes).filter(|texts| texts.len() == trees.len());
    let texts = texts.map(|texts| texts.into_iter().map(Some).collect());
    let texts: Vec<Option<String>> = texts.unwrap_or_else(|| vec![None; trees.len()]);
    Ok(trees.into_iter().zip(texts).map(|(tree, text)| Document { tree, text }).collect())
}

/// The texts between document separators, without those that have only comments.
fn texts(bytes: &[u8]) -> Option<Vec<String>> {
    let mut texts = vec![String::new()];
    for line in str::from_utf8(bytes).ok()?.split_inclusive('\n') {
        let parts = line.strip_prefix("---").is_some_and(|rest| {
            rest.trim().is_empty() || rest.trim_start_matches([' ', '\t']).starts_with('#')
        });
        if parts {
            texts.push(String::new());
        } else if let Some(text) = texts.last_mut() {
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push('\n');
            }
        }
    }
    let has_content = |text: &String| {
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|line| !line.is_empty() && !line.starts_with('#'))
    };
    texts.retain(has_content);
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_its_own_text() {
        let found = read(b"# of a\na: b # why\n---\n---\n# nothing\n--- \nc: d\n").unwrap();
        let texts: Vec<_> = found.iter().map(|document| document.text.as_deref()).collect();
        assert_eq!(texts, [Some("# of a\na: b # why\n"), Some("c: d\n")]);
        // A block scalar may contain a line that looks like a separator.
        let block = read(b"a: |\n  b\n  ---\n  c\n---\nd: e\n").unwrap();
        assert_eq!(block[0].text.as_deref(), Some("a: |\n  b\n  ---\n  c\n"));
        // A separator with a comment, and CRLF line ends.
        let commented = read(b"a: b\r\n--- # next\r\nc: d # why").unwrap();
        let texts: Vec<_> = commented.iter().map(|document| document.text.as_deref()).collect();
        assert_eq!(texts, [Some("a: b\r\n"), Some("c: d # why\n")]);
        assert_eq!(read(b"{\"a\": 1}").unwrap()[0].text, None);
    }
}
