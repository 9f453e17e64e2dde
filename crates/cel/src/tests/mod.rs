//! Rows of upstream's results: each expression is compiled and evaluated, and issues, type,
//! estimated and actual cost, value and error must be equal.

mod hostile;
mod rows;
mod schema;
mod shared;
mod show;
mod spec;
