//! Tests of server-side apply: upstream's cases, and properties of arbitrary writes.

mod managers;
mod ownership;
mod properties;
mod scale;
pub(super) mod schemas;

/// Fails with a list of all failures.
pub(super) fn report(failures: &[String]) {
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}
