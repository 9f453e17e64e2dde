//! The form in which a kind's columns are written down, and how a cell is computed from it.

use pintle_descriptions::Excerpt;
use pintle_meta::{labels, time};
use pintle_registry::table;
use pintle_value::{Str, Value};

use Description::{Field, FieldBefore, Words};

use super::read::{ZERO_TIME, at, bool_at, count_at, int_at, items_at, str_at, time_at};
use super::text::{access_modes, age, amount, filled, joined, label_text};

/// Members from the root of an object down, with dots between: `spec.template.spec`.
pub(super) type Path = &'static str;

/// One column: its definition in the Table, and how its cells are computed.
#[derive(Clone, Copy)]
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    description: Description,
    priority: i32,
    declared: bool,
    cell: Cell,
}

/// The description of a column. It is part of the wire format, so it is upstream's.
#[derive(Clone, Copy)]
pub(super) enum Description {
    /// A text of the printer.
    Words(&'static str),
    /// The description of a field of a type. The type's name has no `io.k8s.api.`; types of
    /// `meta.v1` are apimachinery's.
    Field(&'static str, &'static str),
    /// The description that a field had in an older version and that the printer still uses: the
    /// current one up to a sentence that was added later.
    FieldBefore(&'static str, &'static str, &'static str),
}

/// How a cell is computed from an object.
///
/// Upstream prints the decoded and defaulted object, in which an optional member is a pointer:
/// "absent" below means nil. Members that are not pointers have a zero value instead; "absent or
/// empty" is for them.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// The string at a path, `""` where it is absent.
    Text(Path),
    /// The string at a path, another text where it is absent.
    TextOr(Path, &'static str),
    /// The string at a path, another text where it is absent or empty.
    FilledOr(Path, &'static str),
    /// The integer at a path, 0 where it is absent.
    Int(Path),
    /// The integer at a path, a text where it is absent.
    IntOr(Path, &'static str),
    /// The boolean at a path, another where it is absent.
    BoolOr(Path, bool),
    /// How long ago the time at a path was, `<unknown>` where it is absent or zero.
    Age(Path),
    /// How long ago the time at a path was, another text where it is absent.
    AgeOr(Path, &'static str),
    /// The time at a path as RFC 3339 in UTC, the zero time where it is absent.
    Time(Path),
    /// The number of items in the list or map at a path.
    Count(Path),
    /// The strings of the list at a path with commas between, another text if that is empty.
    JoinedOr(Path, &'static str),
    /// The member of each item of the list at a path, with commas between.
    Each(Path, &'static str),
    /// The labels of the map at a path, `<none>` without any.
    Labels(Path),
    /// The label selector at a path, `<none>` where it is absent or selects everything.
    Selector(Path),
    /// The access modes of the list at a path, abbreviated.
    AccessModes(Path),
    /// The quantity at a path, another text where it is absent.
    QuantityOr(Path, &'static str),
    /// The result of a function of the object.
    By(fn(&Value) -> Value),
    /// The result of a function of the object that depends on the time.
    ByTime(fn(&Value) -> table::Cell),
}

/// The first column of every table, except the table of events.
pub(super) const NAME: Column = string("Name", Cell::Text("metadata.name"), NAME_TEXT).named();
/// The description of a column with the object's name.
pub(super) const NAME_TEXT: Description = Field("meta.v1.ObjectMeta", "name");
/// The description of a column with the time of the object's creation.
pub(super) const AGE_TEXT: Description = Field("meta.v1.ObjectMeta", "creationTimestamp");
/// The time since the creation of the object.
pub(super) const AGE: Column = string("Age", Cell::Age("metadata.creationTimestamp"), AGE_TEXT);
/// The columns of kinds that have nothing else to show.
pub(super) const NAME_AND_AGE: &[Column] = &[NAME, AGE];

/// The names of the containers in a pod's spec.
pub(super) const fn containers(path: Path) -> Column {
    string(
        "Containers",
        Cell::Each(path, "name"),
        Words("Names of each container in the template."),
    )
}

/// The images of the containers in a pod's spec.
pub(super) const fn images(path: Path) -> Column {
    string(
        "Images",
        Cell::Each(path, "image"),
        Words("Images referenced by each container in the template."),
    )
}

/// The pods that a label selector chooses.
pub(super) const fn selector(path: Path, description: Description) -> Column {
    string("Selector", Cell::Selector(path), description)
}

/// A column of type `string`. Some have numbers in their cells, as upstream's do.
pub(super) const fn string(name: &'static str, cell: Cell, description: Description) -> Column {
    Column { name, kind: "string", format: "", description, priority: 0, declared: true, cell }
}

/// A column of integers.
pub(super) const fn integer(name: &'static str, cell: Cell, description: Description) -> Column {
    Column { kind: "integer", ..string(name, cell, description) }
}

/// A column of type `boolean`.
pub(super) const fn boolean(name: &'static str, cell: Cell, description: Description) -> Column {
    Column { kind: "boolean", ..string(name, cell, description) }
}

/// A column of times.
pub(super) const fn date(name: &'static str, cell: Cell, description: Description) -> Column {
    Column { kind: "date", ..string(name, cell, description) }
}

impl Column {
    /// Shown with `-o wide` only.
    pub(super) const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// The column that names the object.
    pub(super) const fn named(self) -> Self {
        Self { format: "name", ..self }
    }

    /// The column is not announced, but has a cell in each row.
    pub(super) const fn undeclared(self) -> Self {
        Self { declared: false, ..self }
    }

    /// The field that the column's description is about, if it is about one.
    pub(super) fn described_field(&self) -> Option<(String, &'static str)> {
        match self.description {
            Field(type_name, field) | FieldBefore(type_name, field, _) => {
                Some((full_name(type_name), field))
            }
            Words(_) => None,
        }
    }

    /// The column as tables announce it.
    pub(super) fn definition(&self, fields: &Excerpt) -> Option<table::Column> {
        self.declared.then(|| table::Column {
            name: Str::const_new(self.name),
            kind: self.kind,
            format: Str::const_new(self.format),
            description: self.description.text(fields),
            priority: self.priority,
        })
    }

    /// The column's cell in the row of an object.
    pub(super) fn cell(&self, object: &Value) -> table::Cell {
        match self.cell {
            Cell::Text(path) => str_at(object, path).into(),
            Cell::TextOr(path, absent) => {
                at(object, path).and_then(Value::as_str).unwrap_or(absent).into()
            }
            Cell::FilledOr(path, empty) => filled(str_at(object, path), empty).into(),
            Cell::Int(path) => int_at(object, path).into(),
            Cell::IntOr(path, absent) => match at(object, path).and_then(Value::as_int) {
                Some(number) => number.into(),
                None => absent.into(),
            },
            Cell::BoolOr(path, absent) => bool_at(object, path).unwrap_or(absent).into(),
            Cell::Age(path) => age(time_at(object, path)),
            Cell::AgeOr(path, absent) => match at(object, path) {
                Some(_) => age(time_at(object, path)),
                None => absent.into(),
            },
            Cell::Time(path) => {
                let seconds = time_at(object, path).unwrap_or(ZERO_TIME);
                time::format(seconds.saturating_mul(time::SECOND)).into()
            }
            Cell::Count(path) => count_at(object, path).into(),
            Cell::JoinedOr(path, empty) => {
                let texts = items_at(object, path).iter().filter_map(Value::as_str);
                filled(&joined(texts), empty).into()
            }
            Cell::Each(path, member) => {
                joined(items_at(object, path).iter().map(|item| str_at(item, member))).into()
            }
            Cell::Labels(path) => label_text(at(object, path)).into(),
            Cell::Selector(path) => labels::format_label_selector(at(object, path)).into(),
            Cell::AccessModes(path) => access_modes(items_at(object, path)).into(),
            Cell::QuantityOr(path, absent) => match at(object, path) {
                Some(value) => amount(value).into(),
                None => absent.into(),
            },
            Cell::By(print) => print(object).into(),
            Cell::ByTime(print) => print(object),
        }
    }
}

impl Description {
    fn text(self, fields: &Excerpt) -> Str {
        let field_text =
            |type_name, field| fields.of_field(&full_name(type_name), field).unwrap_or_default();
        match self {
            Words(words) => Str::const_new(words),
            Field(type_name, field) => field_text(type_name, field).into(),
            FieldBefore(type_name, field, later) => {
                let text = field_text(type_name, field);
                text.split(later).next().unwrap_or(text).trim_end().into()
            }
        }
    }
}

/// The name of a type as the descriptions of fields have it.
fn full_name(type_name: &str) -> String {
    let library = if type_name.starts_with("meta.") { "apimachinery.pkg.apis" } else { "api" };
    format!("io.k8s.{library}.{type_name}")
}
