//! Semantic versions, parsed as by upstream's library, with its errors.

use std::cmp::Ordering;
use std::fmt;

use pintle_meta::quote::quote;

/// A version. Build metadata is ignored in comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Semver {
    /// Major, minor, patch.
    pub(crate) numbers: [u64; 3],
    pre: Vec<Identifier>,
    build: Vec<String>,
    /// The length of its text.
    pub(crate) length: usize,
}

/// An identifier of a pre-release.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Identifier {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let pre = || match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let parts = self.pre.iter().zip(&other.pre).map(|(a, b)| a.order(b));
                let first = parts.into_iter().find(|order| order.is_ne());
                first.unwrap_or_else(|| self.pre.len().cmp(&other.pre.len()))
            }
        };
        self.numbers.cmp(&other.numbers).then_with(pre)
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Semver {}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (at, identifier) in self.pre.iter().enumerate() {
            f.write_str(if at == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(n) => write!(f, "{n}")?,
                Identifier::Text(text) => f.write_str(text)?,
            }
        }
        for (at, identifier) in self.build.iter().enumerate() {
            f.write_str(if at == 0 { "+" } else { "." })?;
            f.write_str(identifier)?;
        }
        Ok(())
    }
}

impl Semver {
    /// Parses a version, with the errors of upstream's library.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(r, b)| (r, Some(b)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(p, r)| (p, Some(r)));
        let numbers = [number(major, "Major")?, number(minor, "Minor")?, number(patch, "Patch")?];
        let pre = pre.map(|pre| pre.split('.').map(identifier).collect());
        let build = build.map(|build| build.split('.').map(build_part).collect());
        Ok(Self {
            numbers,
            pre: pre.unwrap_or(Ok(Vec::new()))?,
            build: build.unwrap_or(Ok(Vec::new()))?,
            length: text.len(),
        })
    }

    /// Parses a version that may have a leading `v`, leading zeros, or missing parts.
    pub(crate) fn parse_loosely(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }
}

fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        rest.to_owned()
    } else {
        format!("0{rest}")
    }
}

fn is_numeric(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    if !is_numeric(text) {
        let what = what.to_lowercase();
        return Err(format!("Invalid character(s) found in {what} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{what} number must not contain leading zeroes {}", quote(text)));
    }
    text.parse().map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            std::num::IntErrorKind::PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseUint: parsing {}: {why}", quote(text))
    })
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if is_numeric(text) {
        if text.len() > 1 && text.starts_with('0') {
            let quoted = quote(text);
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {quoted}"
            ));
        }
        return match text.parse() {
            Ok(n) => Ok(Identifier::Number(n)),
            Err(_) => {
                Err(format!("strconv.ParseUint: parsing {}: value out of range", quote(text)))
            }
        };
    }
    if !is_identifier(text) {
        return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
    }
    Ok(Identifier::Text(text.to_owned()))
}

fn build_part(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if !is_identifier(text) {
        return Err(format!("Invalid character(s) found in build meta data {}", quote(text)));
    }
    Ok(text.to_owned())
}
