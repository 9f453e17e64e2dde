//! Tables: what a kind's printer gives, before anything is encoded.
//!
//! Must not know: the time. A row is kept with its object, so a cell that tells how long ago something
//! was holds when it was.

use std::cmp::Ordering;
use std::fmt;

use pintle_meta::duration;
use pintle_value::{Str, Value, json};

/// Prints objects of one kind as rows.
pub trait Printer: Send + Sync {
    /// The columns, always all of them.
    fn columns(&self) -> &[Column];

    /// The row of an object (in the version that was asked for).
    fn row(&self, object: &Value) -> Row;

    /// How the rows of one page of a list are ordered; `None` keeps the list's order.
    fn order(&self) -> Option<RowOrder> {
        None
    }

    /// Where the Tables of the kind differ from those of most.
    fn manner(&self) -> Manner {
        Manner::default()
    }
}

impl fmt::Debug for dyn Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.columns().iter().map(|column| &column.name)).finish()
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
    /// What it tells.
    pub cells: Vec<Cell>,
    /// Conditions of the row (finished pods are `Completed`), in their JSON form.
    pub conditions: Vec<Value>,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A string, an integer, a number, a boolean or nothing: the same at any time.
    Fixed(Value),
    /// How long ago a time was, with a text on either side.
    Since {
        /// The text before.
        before: Str,
        /// The time.
        time: UnixSeconds,
        /// The text behind.
        after: Str,
    },
}

impl<V: Into<Value>> From<V> for Cell {
    fn from(value: V) -> Self {
        Self::Fixed(value.into())
    }
}

impl Cell {
    /// How long ago a time was, and nothing else.
    pub const fn since(time: UnixSeconds) -> Self {
        Self::Since { before: Str::const_new(""), time, after: Str::const_new("") }
    }

    /// What the cell tells at a time.
    pub fn at(&self, now: UnixSeconds) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Since { before, time, after } => {
                format!("{before}{}{after}", age(*time, now)).into()
            }
        }
    }
}

fn age(time: UnixSeconds, now: UnixSeconds) -> String {
    duration::human(now.saturating_sub(time))
}

/// The members of a row's condition, in upstream's order.
const CONDITION_MEMBERS: [&str; 4] = ["type", "status", "reason", "message"];

/// A row as JSON that lacks its end, `{"cells":[…],"conditions":[…]`, and what goes by the time.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) json: Vec<u8>,
    /// Within strings of the JSON.
    pub(crate) ages: Vec<Age>,
}

/// Where in a text it is to be told how long ago a time was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Age {
    at: usize,
    time: UnixSeconds,
}

impl Printed {
    pub(crate) fn of(row: &Row) -> Self {
        let mut printed = Self { json: Vec::with_capacity(256), ages: Vec::new() };
        printed.json.extend_from_slice(br#"{"cells":["#);
        for (at, cell) in row.cells.iter().enumerate() {
            if at > 0 {
                printed.json.push(b',');
            }
            printed.cell(cell);
        }
        printed.json.push(b']');
        if !row.conditions.is_empty() {
            printed.json.extend_from_slice(br#","conditions":"#);
            let out = &mut printed.json;
            json::write_list(&row.conditions, &mut json::Compact, out, |condition, _, out| {
                write_condition(condition, out);
            });
        }
        printed
    }

    fn cell(&mut self, cell: &Cell) {
        match cell {
            Cell::Fixed(value) => json::write(value, &mut self.json),
            Cell::Since { before, time, after } => {
                json::write_string(before, &mut self.json);
                self.json.pop(); // the quote
                self.ages.push(Age { at: self.json.len(), time: *time });
                let behind = self.json.len();
                json::write_string(after, &mut self.json);
                self.json.remove(behind); // the other quote
            }
        }
    }
}

/// Writes a printed row as it is at a time.
pub(crate) fn write_at(json: &[u8], ages: &[Age], now: UnixSeconds, out: &mut Vec<u8>) {
    let mut written = 0;
    for Age { at, time } in ages {
        out.extend_from_slice(&json[written..*at]);
        written = *at;
        match age(*time, now).as_str() {
            "<invalid>" => out.extend_from_slice(br"\u003cinvalid\u003e"),
            text => out.extend_from_slice(text.as_bytes()),
        }
    }
    out.extend_from_slice(&json[written..]);
}

fn write_condition(condition: &Value, out: &mut Vec<u8>) {
    let present = CONDITION_MEMBERS.iter().filter_map(|key| Some((*key, condition.get(key)?)));
    let present: Vec<_> = present.collect();
    json::write_map(&present, &mut json::Compact, out, |(key, value), layout, out| {
        json::write_key(key, layout, out);
        json::write(value, out);
    });
}

#[cfg(test)]
mod tests;
