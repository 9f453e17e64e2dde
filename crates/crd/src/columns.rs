//! The tables of custom resources: the name, and the columns of the definition.

use std::sync::LazyLock;

use pintle_descriptions::Excerpt;
use pintle_meta::quote::plain;
use pintle_meta::time;
use pintle_registry::table::{Cell, Column, Printer, Row};
use pintle_value::{Str, Value, json};

use crate::json_path::{JsonPath, VISITS_MAX};

/// The descriptions of the members that tables show: the name, and by default the age.
static FIELDS: LazyLock<Excerpt> =
    LazyLock::new(|| Excerpt::of([NAME, AGE].map(|field| (META.to_owned(), field))));
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const NAME: &str = "name";
const AGE: &str = "creationTimestamp";

fn about(field: &'static str) -> Str {
    FIELDS.of_field(META, field).unwrap_or_default().into()
}

/// The printer of a version.
pub(crate) struct Columns {
    columns: Vec<Column>,
    /// The paths of the columns after the name.
    paths: Vec<JsonPath>,
}

impl Columns {
    /// The columns of the Scale of a custom resource.
    pub(crate) fn of_scale() -> Self {
        let replicas = [
            ("Desired", "Number of desired replicas", ".spec.replicas"),
            ("Available", "Number of actual replicas", ".status.replicas"),
        ];
        let replicas = replicas.map(|(name, about, path)| (name, "integer", about.into(), path));
        let age = ("Age", "date", about(AGE), ".metadata.creationTimestamp");
        let mut columns = vec![column("Name", "string", "name", about(NAME), 0)];
        let mut paths = Vec::new();
        for (name, kind, description, path) in replicas.into_iter().chain([age]) {
            columns.push(column(name, kind, "", description, 0));
            paths.extend(JsonPath::parse(path));
        }
        Self { columns, paths }
    }

    /// Reads `additionalPrinterColumns`. As in upstream, an invalid path hides its column and all
    /// later ones.
    pub(crate) fn read(columns: &[Value]) -> Self {
        let mut table = Self { columns: Vec::new(), paths: Vec::new() };
        table.columns.push(column("Name", "string", "name", about(NAME), 0));
        if columns.is_empty() {
            table.columns.push(column("Age", "date", "", about(AGE), 0));
            table.paths.extend(JsonPath::parse(".metadata.creationTimestamp"));
            return table;
        }
        for given in columns {
            let text = |key: &str| given.str_at(&[key]).unwrap_or_default();
            let path = text("jsonPath");
            let Some(parsed) = JsonPath::parse(path) else { break };
            let description = match text("description") {
                "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                accepted_map => accepted_map.to_owned(),
            };
            let priority = given.get("priority").and_then(Value::as_int).unwrap_or(0);
            let priority = i32::try_from(priority).unwrap_or(i32::MAX);
            let shown =
                column(text("name"), text("type"), text("format"), description.into(), priority);
            table.columns.push(shown);
            table.paths.push(parsed);
        }
        table
    }
}

fn column(name: &str, kind: &str, format: &str, description: Str, priority: i32) -> Column {
    const KINDS: [&str; 5] = ["string", "integer", "number", "boolean", "date"];
    let kind = KINDS.into_iter().find(|known| *known == kind).unwrap_or("string");
    let (name, format) = (Str::from(name), Str::from(format));
    Column { name, kind, format, description, priority }
}

impl Printer for Columns {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn row(&self, object: &Value) -> Row {
        let mut cells = vec![Cell::from(pintle_meta::object::name(object))];
        let mut left = VISITS_MAX; // of the row: a definition may have thousands of columns
        for (path, column) in self.paths.iter().zip(&self.columns[1..]) {
            let found = path.find(object, &mut left).first().copied();
            cells.push(found.map_or(Value::Null.into(), |value| cell(column.kind, value)));
        }
        Row { cells, conditions: Vec::new() }
    }
}

fn cell(kind: &str, value: &Value) -> Cell {
    match (kind, value) {
        ("string", Value::Null) => "<no value>".into(),
        ("string", Value::Object(_) | Value::Array(_)) => json::to_string(value).into(),
        ("string", value) => plain(value).into(),
        ("integer", Value::Int(n)) => (*n).into(),
        // As Go converts on amd64.
        ("integer", Value::Float(x)) if x.abs() >= 2f64.powi(63) => Value::Int(i64::MIN).into(),
        ("integer", Value::Float(x)) => Value::Int(*x as i64).into(),
        ("number", Value::Int(_) | Value::Float(_)) | ("boolean", Value::Bool(_)) => {
            value.clone().into()
        }
        ("date", Value::String(text)) => match time::parse(text) {
            Ok(micros) => Cell::since(micros.div_euclid(time::SECOND)),
            Err(_) => "<invalid>".into(),
        },
        _ => Value::Null.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_types_of_their_columns() {
        let value = |text: &str| json::parse(text.as_bytes()).expect("JSON");
        for (kind, accepted_map, expected) in [
            ("string", r#""a""#, r#""a""#),
            ("string", "3", r#""3""#),
            ("string", r#"{"a":1}"#, r#""{\"a\":1}""#),
            ("string", "null", r#""\u003cno value\u003e""#),
            ("boolean", "null", "null"),
            ("integer", "3", "3"),
            ("integer", "3.7", "3"),
            ("integer", "1e20", "-9223372036854775808"),
            ("integer", r#""3""#, "null"),
            ("number", "3.5", "3.5"),
            ("boolean", "true", "true"),
            ("boolean", "1", "null"),
            ("date", r#""1970-01-01T00:00:00Z""#, r#""16m""#),
            ("date", r#""x""#, r#""\u003cinvalid\u003e""#),
        ] {
            let cell = cell(kind, &value(accepted_map));
            assert_eq!(json::to_string(&cell.at(960)), expected, "{kind} {accepted_map}");
        }
    }

    #[test]
    fn default_columns_are_name_and_age() {
        let table = Columns::read(&[]);
        let names: Vec<_> = table.columns().iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["Name", "Age"]);
    }

    /// The columns of a row share the limit of visited values.
    #[test]
    fn a_row_is_bounded_whatever_the_number_of_columns() {
        let path = "\".items[?(@ > 0)]\"";
        let column = format!(r#"{{"name":"a","type":"integer","jsonPath":{path}}}"#);
        let value = |text: &str| json::parse(text.as_bytes()).expect("JSON");
        let columns = value(&format!("[{}]", vec![&*column; 1000].join(",")));
        let columns = columns.as_array().expect("a list");
        let items = vec!["1"; 30_000].join(",");
        let object = value(&format!(r#"{{"metadata":{{"name":"o"}},"items":[{items}]}}"#));
        let row = Columns::read(columns).row(&object);
        let filled = row.cells.iter().filter(|cell| **cell != Value::Null.into()).count();
        assert!((2..10).contains(&filled), "{filled}");
    }
}
