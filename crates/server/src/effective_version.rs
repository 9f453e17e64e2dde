//! The release that the server acts as (`--emulated-version`), and the oldest release among the
//! servers that share its database (`--min-compatibility-version`).
//!
//! Upstream: component-base/compatibility.

use std::fmt;

use pintle_kinds::NEWEST_MINOR;
use pintle_meta::quote::quote;

use crate::Error;

/// A release, without its patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release {
    major: u32,
    minor: u32,
}

/// The release that this program implements.
const BINARY: Release = Release { major: 1, minor: NEWEST_MINOR };
/// The oldest release that it can act as.
const OLDEST: Release = Release { major: 1, minor: NEWEST_MINOR - 3 };
/// The only component that a version can be named for.
const COMPONENT: &str = "kube";

/// The releases that determine the served APIs and the enabled features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveVersion {
    emulation: Release,
    min_compatibility: Release,
}

impl Default for EffectiveVersion {
    fn default() -> Self {
        Self::emulating(BINARY)
    }
}

impl EffectiveVersion {
    /// Reads the values of both flags, each `1.35` or `kube=1.35`.
    ///
    /// # Errors
    /// If a value is no release of this component, or this program cannot act as that release.
    pub fn parse<'a>(
        emulated: impl IntoIterator<Item = &'a str>,
        min_compatibility: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        let flag = |flag| move |reason| Error::Flag { flag, reason };
        let emulated = release(emulated).map_err(flag("emulated-version"))?;
        let oldest = release(min_compatibility).map_err(flag("min-compatibility-version"))?;
        let mut version = emulated.map_or_else(Self::default, Self::emulating);
        version.min_compatibility = oldest.unwrap_or(version.min_compatibility);
        version.check().map_err(flag("emulated-version"))?;
        Ok(version)
    }

    fn emulating(emulation: Release) -> Self {
        let before = Release { minor: emulation.minor.saturating_sub(1), ..emulation };
        Self { emulation, min_compatibility: before.max(OLDEST) }
    }

    fn check(&self) -> Result<(), String> {
        let Self { emulation, min_compatibility } = self;
        let mut errors = Vec::new();
        if !(OLDEST..=BINARY).contains(emulation) {
            errors.push(format!(
                "emulation version {emulation} is not between [{OLDEST}, {BINARY}.0]"
            ));
        }
        if !(OLDEST..=*emulation).contains(min_compatibility) {
            errors.push(format!(
                "minCompatibilityVersion version {min_compatibility} is not between [{OLDEST}, \
                 {emulation}]"
            ));
        }
        match &*errors {
            [] => Ok(()),
            [error] => Err(error.clone()),
            errors => Err(format!("[{}]", errors.join(", "))),
        }
    }

    /// Whether the server acts as an older release than it is.
    pub fn is_emulation(&self) -> bool {
        self.emulation != BINARY
    }

    /// The minor number of the release that the server acts as.
    pub fn emulated_minor(&self) -> u32 {
        self.emulation.minor
    }

    /// The release that the server acts as: `1.36`.
    pub(crate) fn emulation(&self) -> String {
        self.emulation.to_string()
    }

    /// The oldest release among the servers of the database: `1.35`.
    pub(crate) fn min_compatibility(&self) -> String {
        self.min_compatibility.to_string()
    }

    pub(crate) fn emulation_numbers(&self) -> (String, String) {
        self.emulation.numbers()
    }

    pub(crate) fn min_compatibility_numbers(&self) -> (String, String) {
        self.min_compatibility.numbers()
    }
}

impl Release {
    fn numbers(self) -> (String, String) {
        (self.major.to_string(), self.minor.to_string())
    }

    /// Parses a version as upstream does: `v1.35`, `1.35` or `1.35.0`. Returns it and the patch
    /// number.
    fn parse(text: &str) -> Option<(Self, u32)> {
        let text = text.trim();
        let mut numbers = text.strip_prefix('v').unwrap_or(text).split('.').map(number);
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let patch = numbers.next().unwrap_or(Some(0))?;
        numbers.next().is_none().then_some((Self { major, minor }, patch))
    }
}

/// A decimal number without leading zeros.
fn number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The release that the values of a flag name.
fn release<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Option<Release>, String> {
    let mut found: Option<Release> = None;
    for value in values.into_iter().flat_map(|value| value.split(',')) {
        let (component, text) = value.split_once('=').unwrap_or((COMPONENT, value));
        let (component, text) = (component.trim(), text.trim());
        let (release, patch) = Release::parse(text)
            .ok_or_else(|| format!("could not parse {} as version", quote(text)))?;
        if patch != 0 {
            return Err(format!("patch version not allowed, got: {component}={release}.{patch}"));
        }
        if component != COMPONENT {
            return Err(format!("component not registered: {component}"));
        }
        if let Some(found) = found {
            return Err(format!(
                "duplicate version flag, {COMPONENT}={found} and {COMPONENT}={release}"
            ));
        }
        found = Some(release);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of both flags, and the resulting emulated and minimum versions, or the error.
    type Row =
        (&'static [&'static str], &'static [&'static str], Result<[&'static str; 2], &'static str>);

    /// The errors are those of kube-apiserver v1.36.3, asked with the same values.
    #[test]
    fn a_release_is_one_of_the_last_four() {
        let rows: &[Row] = &[
            (&[], &[], Ok(["1.36", "1.35"])),
            (&["1.36"], &["1.36"], Ok(["1.36", "1.36"])),
            (&["kube=1.35"], &[], Ok(["1.35", "1.34"])),
            (&["v1.34.0"], &["1.34"], Ok(["1.34", "1.34"])),
            (&["1.33"], &[], Ok(["1.33", "1.33"])),
            (&["1.37"], &[], Err("emulation version 1.37 is not between [1.33, 1.36.0]")),
            (
                &["1.32"],
                &[],
                Err("[emulation version 1.32 is not between [1.33, 1.36.0], \
                     minCompatibilityVersion version 1.33 is not between [1.33, 1.32]]"),
            ),
            (
                &["1.34"],
                &["1.35"],
                Err("minCompatibilityVersion version 1.35 is not between [1.33, 1.34]"),
            ),
            (&["1.36.1"], &[], Err("patch version not allowed, got: kube=1.36.1")),
            (&["abc"], &[], Err("could not parse \"abc\" as version")),
            (&["1"], &[], Err("could not parse \"1\" as version")),
            (&["1.035"], &[], Err("could not parse \"1.035\" as version")),
            (&["1.99999999999"], &[], Err("could not parse \"1.99999999999\" as version")),
            (&["foo=1.35"], &[], Err("component not registered: foo")),
            (&["kube=1.35,kube=1.34"], &[], Err("duplicate version flag, kube=1.35 and kube=1.34")),
        ];
        for (emulated, oldest, expected) in rows {
            let read = EffectiveVersion::parse(emulated.iter().copied(), oldest.iter().copied());
            let read = read.map(|read| [read.emulation(), read.min_compatibility()]);
            let read = read.map_err(|error| error.to_string());
            let expected = expected
                .map(|releases| releases.map(str::to_owned))
                .map_err(|why| format!("--emulated-version: {why}"));
            assert_eq!(read, expected, "{emulated:?} {oldest:?}");
        }
    }
}
