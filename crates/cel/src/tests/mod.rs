//! Rows of upstream's outcomes: each expression is compiled and evaluated, and issues, type, estimated
//! and actual cost, value and error must be the same.

mod hostile;
mod rows;
mod schema;
mod show;
mod spec;
