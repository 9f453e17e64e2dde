//! The Tables of the built-in kinds: their columns, and how cells are computed.
//!
//! A kind is an entry in the `KINDS` of its group's file. Most cells are a path and a way to print
//! the value (`column::Cell`); functions compute special ones. Kinds without an entry have the
//! default Table, a name and a creation time.
//!
//! The cells are those of `kubectl get -o wide` on a v1.36 server: servers always send all columns
//! and cells (TBL-04). Versions of a kind share a Table.
//!
//! Must not know: requests for Tables and their encodings, lists, the clock.
//!
//! Invariant: a printer returns a row for every object tree, whatever is missing or of the wrong
//! type.

mod admission;
mod apiserver;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod column;
mod coordination;
mod core;
mod events;
mod networking;
mod nodes;
mod pods;
mod rbac;
mod read;
mod resource;
mod scheduling;
mod services;
mod storage;
#[cfg(test)]
mod tests;
mod text;
mod volumes;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, OnceLock};

use pintle_descriptions::Excerpt;
use pintle_registry::table::{self, Printer, Row, RowOrder, TableVariant};
use pintle_value::Value;

use column::{AGE_TEXT, Cell, Column, NAME, date};

/// The printer of a kind in any of its versions; the default one for kinds that have none.
///
/// `Scale` (in `autoscaling`) and `Status` (in the core group) have printers too, though they are
/// no resources.
pub fn printer(group: &str, kind: &str) -> Arc<dyn Printer> {
    let found = KINDS.iter().copied().flatten().find(|k| k.kind == kind && k.group == group);
    Arc::new(Table { kind: found.unwrap_or(&DEFAULT), columns: OnceLock::new() })
}

const KINDS: &[&[Kind]] = &[
    admission::KINDS,
    apiserver::KINDS,
    apps::KINDS,
    autoscaling::KINDS,
    batch::KINDS,
    certificates::KINDS,
    coordination::KINDS,
    core::KINDS,
    events::KINDS,
    networking::KINDS,
    nodes::KINDS,
    pods::KINDS,
    rbac::KINDS,
    resource::KINDS,
    scheduling::KINDS,
    services::KINDS,
    storage::KINDS,
    volumes::KINDS,
];

const DEFAULT: Kind = Kind::new("", "", NAME_AND_TIME)
    .with_variant(TableVariant { repeats_columns: false, null_rows: true });

const NAME_AND_TIME: Columns =
    &[NAME, date("Created At", Cell::Time("metadata.creationTimestamp"), AGE_TEXT)];

/// The descriptions of the fields to which columns refer.
static FIELDS: LazyLock<Excerpt> = LazyLock::new(|| {
    let kinds = KINDS.iter().copied().flatten().chain([&DEFAULT]);
    let columns = kinds.flat_map(|kind| kind.columns);
    Excerpt::of(columns.filter_map(Column::described_field))
});

/// The columns of a kind, in their order.
type Columns = &'static [Column];

/// How objects of one kind are printed.
struct Kind {
    group: &'static str,
    kind: &'static str,
    columns: Columns,
    form: fn(&Value) -> Cow<'_, Value>,
    conditions: fn(&Value) -> Vec<Value>,
    order: Option<RowOrder>,
    variant: TableVariant,
}

impl Kind {
    /// A kind whose rows carry no conditions and follow the list's order.
    const fn new(group: &'static str, kind: &'static str, columns: Columns) -> Self {
        Self {
            group,
            kind,
            columns,
            form: |object| Cow::Borrowed(object),
            conditions: |_| Vec::new(),
            order: None,
            variant: TableVariant { repeats_columns: false, null_rows: false },
        }
    }

    /// With columns of the form that `form` returns for objects of any version.
    const fn with_form(self, form: fn(&Value) -> Cow<'_, Value>) -> Self {
        Self { form, ..self }
    }

    /// With conditions on the rows of some objects.
    const fn with_conditions(self, conditions: fn(&Value) -> Vec<Value>) -> Self {
        Self { conditions, ..self }
    }

    /// With rows in another order than the list's.
    const fn with_order(self, order: RowOrder) -> Self {
        Self { order: Some(order), ..self }
    }

    /// With Tables of another variant than those of most kinds.
    const fn with_variant(self, variant: TableVariant) -> Self {
        Self { variant, ..self }
    }
}

struct Table {
    kind: &'static Kind,
    /// Created on first use, because their descriptions are decompressed then.
    columns: OnceLock<Vec<table::Column>>,
}

impl Printer for Table {
    fn columns(&self) -> &[table::Column] {
        let define = |column: &Column| column.definition(&FIELDS);
        self.columns.get_or_init(|| self.kind.columns.iter().filter_map(define).collect())
    }

    fn row(&self, object: &Value) -> Row {
        let object = (self.kind.form)(object);
        Row {
            cells: self.kind.columns.iter().map(|column| column.cell(&object)).collect(),
            conditions: (self.kind.conditions)(&object),
        }
    }

    fn order(&self) -> Option<RowOrder> {
        self.kind.order
    }

    fn variant(&self) -> TableVariant {
        self.kind.variant
    }
}
