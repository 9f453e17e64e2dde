//! Constants made by `cargo xtask generate`.

#[rustfmt::skip]
pub(crate) mod types;
