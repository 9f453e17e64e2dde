//! The text of an expression, and positions in it.

use std::fmt::Write as _;

/// A byte offset in an expression; `None` for the expression as a whole.
pub(crate) type Offset = Option<u32>;

/// The maximum length of a line that is shown with an issue.
const SNIPPET_MAX: usize = 16_384;

/// The maximum number of issues that a compilation reports.
const ISSUES_MAX: usize = 100;

/// A problem of an expression, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The line, from 1; `-1` for an issue with the whole expression.
    pub line: i32,
    /// The column in characters, from 0; `-1` for an issue with the whole expression.
    pub column: i32,
    /// The message, as in upstream.
    pub message: String,
}

/// All problems of an expression. Displayed as in upstream: each issue with its position, the line,
/// and a marker below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    source: Box<str>,
    issues: Vec<Issue>,
    count: usize,
}

impl Issues {
    pub(crate) fn new(source: &str) -> Self {
        Self { source: source.into(), issues: Vec::new(), count: 0 }
    }

    pub(crate) fn report(&mut self, at: Offset, message: impl Into<String>) {
        self.count += 1;
        if self.issues.len() < ISSUES_MAX {
            let (line, column) = position(&self.source, at);
            self.issues.push(Issue { line, column, message: message.into() });
        }
    }

    /// Reports a problem that makes all others meaningless.
    pub(crate) fn report_only(&mut self, message: impl Into<String>) {
        self.issues.clear();
        self.count = 0;
        self.report(None, message);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the issues sorted by position.
    pub(crate) fn sorted(mut self) -> Self {
        self.issues.sort_by_key(|issue| (issue.line, issue.column));
        self
    }

    /// The issues, at most a hundred.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Issue> {
        self.issues.iter()
    }
}

impl std::fmt::Display for Issues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, issue) in self.issues.iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            write!(f, "ERROR: <input>:{}:{}: ", issue.line, issue.column + 1)?;
            f.write_str(&issue.message)?;
            self.mark(issue, f)?;
        }
        if self.count > self.issues.len() {
            write!(f, "\n{} more errors were truncated", self.count - self.issues.len())?;
        }
        Ok(())
    }
}

impl std::error::Error for Issues {}

impl Issues {
    /// Writes the line of an issue and a marker below its column; wide characters get wide markers.
    fn mark(&self, issue: &Issue, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.source.is_empty() {
            return Ok(());
        }
        let Some(line) = usize::try_from(issue.line).ok().and_then(|n| n.checked_sub(1)) else {
            return Ok(());
        };
        let Some(text) = self.source.split('\n').nth(line).filter(|t| t.len() <= SNIPPET_MAX)
        else {
            return Ok(());
        };
        let text = text.replace('\t', " ");
        write!(f, "\n | {text}\n | ")?;
        let column = usize::try_from(issue.column).unwrap_or(0);
        let mut chars = text.chars();
        for c in chars.by_ref().take(column) {
            f.write_char(if c.is_ascii() { '.' } else { '\u{ff0e}' })?;
        }
        let wide = chars.next().is_some_and(|c| !c.is_ascii());
        f.write_char(if wide { '\u{ff3e}' } else { '^' })
    }
}

/// The line (from 1) and column (from 0, in characters) of an offset.
fn position(source: &str, at: Offset) -> (i32, i32) {
    let Some(at) = at else { return (-1, -1) };
    if source.is_empty() {
        // Upstream has no columns in an empty text.
        return (1, -1);
    }
    let before = source.get(..at as usize).unwrap_or(source);
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    let lines = before.bytes().filter(|b| *b == b'\n').count();
    let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    (number(lines + 1), number(before[start..].chars().count()))
}
