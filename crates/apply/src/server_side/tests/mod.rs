//! Upstream's cases, and properties that hold for any writes.

mod managers;
mod ownership;
mod properties;
mod scale;
pub(super) mod schemas;

/// Fails with everything that went wrong.
pub(super) fn report(failures: &[String]) {
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}
