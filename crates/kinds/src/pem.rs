//! Texts with PEM blocks, read as Go reads them.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

/// A block whose end has not been read yet.
struct Open<'a> {
    kind: &'a str,
    body: String,
}

/// The types of the PEM blocks in a text, in order. Text around blocks and incomplete blocks are
/// ignored.
pub(crate) fn kinds(text: &str) -> Vec<&str> {
    let mut kinds = Vec::new();
    let mut open: Option<Open<'_>> = None;
    for line in text.lines().map(|line| line.trim_end_matches([' ', '\t'])) {
        if let Some(kind) = named(line, "-----BEGIN ") {
            open = Some(Open { kind, body: String::new() });
        } else if line.starts_with("-----END ") {
            let whole = open.take().filter(|block| {
                named(line, "-----END ") == Some(block.kind) && BASE64.decode(&block.body).is_ok()
            });
            kinds.extend(whole.map(|block| block.kind));
        } else if let Some(block) = &mut open {
            // Before the body there may be headers.
            if !(block.body.is_empty() && line.contains(':')) {
                block.body.extend(line.chars().filter(|c| !matches!(c, ' ' | '\t')));
            }
        }
    }
    kinds
}

fn named<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix("-----")
}
