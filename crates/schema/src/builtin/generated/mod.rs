//! Constants made by `cargo xtask generate`.

#[rustfmt::skip]
pub(crate) mod go_names;
#[rustfmt::skip]
pub(crate) mod openapi;
#[rustfmt::skip]
pub(crate) mod types;
