//! Tables: the columns and rows that a kind's printer makes, before they are encoded.
//!
//! It must not know the time. Rows are cached with their objects, so a cell that shows an age
//! stores a time stamp.

use std::cmp::Ordering;
use std::fmt;

use pintle_meta::duration;
use pintle_value::{Str, Value, json};

/// Makes Table rows from objects of one kind.
pub trait Printer: Send + Sync {
    /// The columns, those of `-o wide` included.
    fn columns(&self) -> &[Column];

    /// Makes the row of an object, which is in the requested version.
    fn row(&self, object: &Value) -> Row;

    /// The order of the rows of one page; `None` keeps the list's order.
    fn order(&self) -> Option<RowOrder> {
        None
    }

    /// How Tables of the kind differ from most.
    fn variant(&self) -> TableVariant {
        TableVariant::default()
    }
}

impl fmt::Debug for dyn Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.columns().iter().map(|column| &column.name)).finish()
    }
}

/// Variants of Tables that clients can see; upstream's kinds differ in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableVariant {
    /// Each Table of a watch has the columns, not only the first.
    pub repeats_columns: bool,
    /// `rows` of a Table without rows is `null`.
    pub null_rows: bool,
}

/// Compares the objects of two rows.
pub type RowOrder = fn(&Value, &Value) -> Ordering;

/// Seconds since 1970, UTC.
pub type UnixSeconds = i64;

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The title.
    pub name: Str,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: &'static str,
    /// A hint such as `name`, or `""`.
    pub format: Str,
    /// The description for users.
    pub description: Str,
    /// 0 is always shown, 1 only with `-o wide`.
    pub priority: i32,
}

/// A row: as many cells as there are columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The cells.
    pub cells: Vec<Cell>,
    /// The conditions of the row (finished pods are `Completed`), in their JSON form.
    pub conditions: Vec<Value>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A string, an integer, a number, a boolean or null that does not depend on the time.
    Fixed(Value),
    /// The age of a time stamp, within a text.
    Since {
        /// The text before the age.
        before: Str,
        /// The time stamp.
        time: UnixSeconds,
        /// The text after the age.
        after: Str,
    },
}

impl<V: Into<Value>> From<V> for Cell {
    fn from(value: V) -> Self {
        Self::Fixed(value.into())
    }
}

impl Cell {
    /// Makes a cell with only the age of a time stamp.
    pub const fn since(time: UnixSeconds) -> Self {
        Self::Since { before: Str::const_new(""), time, after: Str::const_new("") }
    }

    /// Returns the value of the cell at a time.
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

/// A row as JSON without its end, `{"cells":[…],"conditions":[…]`, and the ages to insert.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) json: Vec<u8>,
    /// The ages, at offsets within strings of the JSON.
    pub(crate) ages: Vec<Age>,
}

/// An age to insert into a text.
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
                self.json.pop(); // the closing quote
                self.ages.push(Age { at: self.json.len(), time: *time });
                let quote = self.json.len();
                json::write_string(after, &mut self.json);
                self.json.remove(quote); // the other quote
            }
        }
    }
}

/// Writes a printed row with its ages at a time.
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
