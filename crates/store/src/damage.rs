//! Converts panics about damaged data to errors: redb panics if a page contradicts its tree.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Error;
use crate::failure::Failure;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// True while this thread reads a database that may be damaged. A panic then becomes an error, so a
/// panic hook need not report it.
pub fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// Runs work that reads a database, and returns a panic as an error. The work owns the state that
/// it changes, so a panic drops the state, too.
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let before = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    done.unwrap_or_else(|panic| {
        let why = message(&*panic);
        Err(Failure(format!("its database is damaged ({why})")).into())
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a page cannot be read")
}
