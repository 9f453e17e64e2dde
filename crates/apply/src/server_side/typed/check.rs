//! Checks whether an applied configuration matches its type. The messages are upstream's.

use std::collections::BTreeSet;
use std::fmt;

use pintle_meta::quote::{go_type, plain, quote};
use pintle_schema::{Scalar, Shape};
use pintle_value::{Map, Value};

use super::{Items, Role, Typing, View, walk};
use crate::server_side::fieldset::{Builder, FieldSet, PathElement, show};

/// The maximum number of problems that are reported.
const PROBLEMS_MAX: usize = 100;

/// The problems of a configuration; displayed as one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [problem] => f.write_str(problem),
            problems => {
                f.write_str("errors:")?;
                problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

/// Returns the fields of `value`, as [`super::field_set`] does. All members must be declared, all
/// values must have the declared types, and all items must be identifiable; without `duplicates`,
/// items must be distinct.
pub(crate) fn check(ty: Typing<'_>, value: &Value, duplicates: bool) -> Result<FieldSet, Problems> {
    let mut checker = Checker { path: Vec::new(), duplicates, problems: Problems::default() };
    let (_, fields) = checker.value(ty, value);
    if checker.problems.0.is_empty() { Ok(fields) } else { Err(checker.problems) }
}

struct Checker {
    path: Vec<PathElement>,
    duplicates: bool,
    problems: Problems,
}

impl Checker {
    fn note(&mut self, problem: impl fmt::Display) {
        if self.problems.0.len() < PROBLEMS_MAX {
            let path = show(&self.path);
            let colon = if path.is_empty() { "" } else { ": " };
            self.problems.0.push(format!("{path}{colon}{problem}"));
        }
    }

    /// Returns whether the value itself is a field, and the fields below it.
    fn value(&mut self, ty: Typing<'_>, value: &Value) -> (bool, FieldSet) {
        match (ty.shape(), value) {
            (_, Value::Null) | (None | Some(Shape::Scalar(Scalar::Any | Scalar::Fields)), _) => {}
            // Upstream does not know the type of such a field of a custom resource. Validation does.
            (Some(Shape::Scalar(Scalar::IntOrString)), _) if ty.is_structural() => {}
            (Some(Shape::Scalar(scalar)), value) => self.scalar(*scalar, value),
            (Some(Shape::Struct { .. } | Shape::Map { .. }), Value::Object(members)) => {
                return self.members(ty, members);
            }
            (Some(Shape::List { .. }), Value::Array(list)) => return self.list(ty, list),
            (Some(Shape::Struct { .. } | Shape::Map { .. }), other) => {
                self.note(format_args!("expected map, got &{{{}}}", plain(other)));
            }
            (Some(Shape::List { .. }), other) => {
                self.note(format_args!("expected list, got &{{{}}}", plain(other)));
            }
        }
        walk::walk(ty, value)
    }

    fn members(&mut self, ty: Typing<'_>, members: &Map) -> (bool, FieldSet) {
        let whole = matches!(ty.view(), View::Leaf);
        let mut set = Builder::with_room(if whole { 0 } else { members.len() });
        for (name, value) in members.iter() {
            let (ty, role) = ty.member(name);
            self.path.push(PathElement::field(name));
            if role == Role::Unknown {
                self.note("field not declared in schema");
                self.path.pop();
                break; // as upstream: at most one for each object
            }
            let (leaf, below) = self.value(ty, value);
            let element = self.path.pop().filter(|_| !whole);
            let member = leaf || walk::is_null_or_empty(value) || role != Role::Field;
            set.extend(element.map(|element| (element, member, below)));
        }
        (whole, set.finish())
    }

    fn list(&mut self, ty: Typing<'_>, list: &[Value]) -> (bool, FieldSet) {
        match (ty.view(), ty.shape()) {
            (View::Items(items), _) => (false, self.items(items, list)),
            (_, Some(Shape::List { item, .. })) => {
                for (at, item_value) in (0..).zip(list) {
                    self.path.push(PathElement::Index(at));
                    self.value(ty.of(*item), item_value);
                    self.path.pop();
                }
                (true, FieldSet::new())
            }
            _ => (true, FieldSet::new()),
        }
    }

    fn items(&mut self, items: Items<'_>, list: &[Value]) -> FieldSet {
        let mut seen = BTreeSet::new();
        let mut set = Builder::with_room(list.len());
        for (at, item) in list.iter().enumerate() {
            let element = match items.element(item) {
                Ok(element) => element,
                Err(why) => {
                    self.note(format_args!("element {at}: {why}"));
                    break;
                }
            };
            if !self.duplicates && list.len() > 1 && !seen.insert(element.clone()) {
                self.note(format_args!("duplicate entries for key {element}"));
            }
            self.path.push(element);
            let (_, below) = self.value(items.ty, item);
            set.extend(self.path.pop().map(|element| (element, true, below)));
        }
        set.finish()
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        use Scalar::{
            Any, Bool, Bytes, Duration, Fields, Float64, Int32, Int64, IntOrString, MicroTime,
            Quantity, RawExtension, String, Time,
        };
        match (scalar, value) {
            (_, Value::Null)
            | (Any | Fields, _)
            | (Int32 | Int64 | Float64, Value::Int(_) | Value::Float(_))
            | (String | Bytes | Time | MicroTime | Duration, Value::String(_))
            | (Bool, Value::Bool(_))
            | (
                Quantity | IntOrString,
                Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Bool(_),
            )
            | (RawExtension, Value::Object(_)) => {}
            (Int32 | Int64 | Float64, other) => {
                self.note(format_args!("expected numeric (int or float), got {}", go_type(other)));
            }
            (String | Bytes | Time | MicroTime | Duration, other) => {
                let value = go_syntax(other);
                self.note(format_args!(
                    "expected string, got &value.valueUnstructured{{Value:{value}}}"
                ));
            }
            (Bool, other) => self.note(format_args!("expected boolean, got &{{{}}}", plain(other))),
            (Quantity | IntOrString, other) => {
                self.note(format_args!("expected any scalar, got &{{{}}}", plain(other)));
            }
            (RawExtension, other) => {
                self.note(format_args!("expected map, got &{{{}}}", plain(other)));
            }
        }
    }
}

/// A decoded value in the format of Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let members = members.iter().map(|(k, v)| format!("{}:{}", quote(k), go_syntax(v)));
            format!("map[string]interface {{}}{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        other => plain(other),
    }
}
