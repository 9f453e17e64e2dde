//! Functions of the C library for programs that are linked with musl, whose own are slow.
//!
//! A program uses them by depending on this crate: the linker prefers them to those of `libc.a`.
//! Without musl the crate is empty, because glibc has vectors for this.
//! docs/decisions/0013-musl.md says why.
//!
//! Must not know which bytes are compared or copied.

#![no_builtins] // the compiler must not turn the loops into calls of these functions

mod compare;
#[cfg(target_arch = "x86_64")]
mod copy;
