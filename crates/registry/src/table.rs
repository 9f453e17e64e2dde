//! Tables: what a kind's printer gives, before anything is encoded.

use std::cmp::Ordering;

use pintle_value::{Str, Value};

/// Prints objects of one kind as rows. Pure: the time comes in.
pub trait Printer: Send + Sync {
    /// The columns, always all of them.
    fn columns(&self) -> &[Column];

    /// The row of an object (in the version that was asked for).
    fn row(&self, object: &Value, now: UnixSeconds) -> Row;

    /// How the rows of one page of a list are ordered; `None` keeps the list's order.
    fn order(&self) -> Option<RowOrder> {
        None
    }

    /// Where the Tables of the kind differ from those of most.
    fn manner(&self) -> Manner {
        Manner::default()
    }
}

/// How the Tables of a kind are written. Clients see the difference, so it is upstream's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Every Table of a watch has the columns, not only the first.
    pub repeats_columns: bool,
    /// A Table without rows has `null` for them.
    pub null_rows: bool,
}

/// Which of two objects has its row first.
pub type RowOrder = fn(&Value, &Value) -> Ordering;

/// Seconds since 1970, UTC.
pub type UnixSeconds = i64;

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The title.
    pub name: Str,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: &'static str,
    /// A hint such as `name`, or `""`.
    pub format: Str,
    /// For people.
    pub description: Str,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
}

/// One row: as many cells as there are columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Strings, integers, booleans.
    pub cells: Vec<Value>,
    /// Conditions of the row (finished pods are `Completed`), in their JSON form.
    pub conditions: Vec<Value>,
}
