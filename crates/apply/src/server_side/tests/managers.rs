//! Upstream's cases of consecutive writes.

use std::collections::BTreeMap;

use pintle_schema::{Schema, TypeId};
use pintle_value::{Map, Str, Value, json};

use super::{report, schemas};
use crate::server_side::fieldset::{FieldSet, Filter};
use crate::server_side::managers::{
    Failure, Identity, Kind, Managers, Operation, Versions, apply, grant, update,
};
use crate::server_side::typed::{Typing, check, extract, field_set, merge};

/// Converts the objects of a case between versions.
struct Converter {
    schema: Schema,
    types: BTreeMap<String, TypeId>,
    sort: String,
}

impl Versions for Converter {
    fn type_of(&self, api_version: &str) -> Option<(&Schema, TypeId)> {
        Some((&self.schema, *self.types.get(api_version)?))
    }

    fn convert(&self, object: Value, from: &str, to: &str) -> Result<Value, String> {
        match self.sort.as_str() {
            // The field `name_v1` of v1 is `name_v2` in v2.
            "renaming" => Ok(renamed(object, from, to)),
            // The field `a` of v1 is `aa` in v2.
            "repeating" => Ok(repeated(object, to)),
            // The field `field_foo_rely_on_bar` of v1 is `required_field_bar` in v2, where it is
            // required.
            "reliantFields" => {
                let text = json::to_string(&object);
                let (foo, bar) = ("field_foo_rely_on_bar", "required_field_bar");
                if to == "v1" && !text.contains(bar) {
                    return Err("missing requried field bar".to_owned());
                }
                let (old, new) = if to == "v1" { (bar, foo) } else { (foo, bar) };
                json::parse(text.replace(old, new).as_bytes()).map_err(|e| e.to_string())
            }
            _ => Ok(object),
        }
    }
}

/// Replaces each key below the root by its first letter, repeated as often as the number of the
/// version says.
fn repeated(object: Value, to: &str) -> Value {
    let times = to.trim_start_matches('v').parse().expect("a version has a number");
    fn again(value: Value, times: usize) -> Value {
        let Value::Object(members) = value else { return value };
        let members = members.into_iter().map(|(name, value)| {
            let letter = name.chars().next().map(String::from).unwrap_or_default();
            (Str::from(letter.repeat(times)), again(value, times))
        });
        Value::Object(members.collect::<Map>())
    }
    let Value::Object(members) = object else { return object };
    let members = members.into_iter().map(|(name, value)| (name, again(value, times)));
    Value::Object(members.collect::<Map>())
}

fn renamed(value: Value, from: &str, to: &str) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let new = name.strip_suffix(from).map(|stem| Str::from(format!("{stem}{to}")));
                (new.unwrap_or(name), renamed(value, from, to))
            });
            Value::Object(members.collect::<Map>())
        }
        Value::Array(items) => {
            items.into_iter().map(|i| renamed(i, from, to)).collect::<Vec<_>>().into()
        }
        scalar => scalar,
    }
}

/// An object and its managers.
struct State {
    live: Value,
    version: String,
    managers: Managers,
}

impl State {
    fn write(
        &mut self,
        kind: Kind<'_>,
        op: &Value,
        manager: &str,
        version: &str,
    ) -> Result<(), Failure> {
        if !self.version.is_empty() && self.version != version {
            let live = std::mem::take(&mut self.live);
            let live = kind.versions.convert(live, &self.version, version);
            self.live = live.map_err(Failure::Other)?;
        }
        version.clone_into(&mut self.version);
        let (schema, ty) = kind.versions.type_of(version).expect("a case has its versions");
        let ty = Typing::new(schema, ty);
        let mut object = op.get("object").cloned().unwrap_or_default();
        let sort = op.get("op").and_then(Value::as_str).unwrap_or_default();
        let duplicates = sort == "update";
        check(ty, &object, duplicates).map_err(|e| Failure::Other(e.to_string()))?;
        // Upstream's cases do not distinguish appliers from updaters of the same name.
        let identity = Identity::new(manager, Operation::Apply, "", "");
        if sort == "update" {
            let fields =
                update(kind, version, (&self.live, &object), &mut self.managers, &identity)?;
            grant(&mut self.managers, identity, version, fields, 0);
            self.live = object;
            return Ok(());
        }
        if sort == "extract" {
            let own = self.managers.get(&identity).map(|owned| owned.fields().clone().leaves());
            let mut extracted = extract(ty, &self.live, &own.unwrap_or_default());
            merge(ty, &mut extracted, &object).map_err(|e| Failure::Other(e.to_string()))?;
            object = extracted;
        }
        let (mut managers, mut live) = (self.managers.clone(), self.live.clone());
        let applied = (&object, field_set(ty, &object));
        apply(kind, version, &mut live, applied, &mut managers, &identity, sort != "apply")?;
        (self.managers, self.live) = (managers, live);
        Ok(())
    }

    /// The version and fields of each manager.
    fn managed(&self) -> Value {
        let managed = self.managers.iter().map(|(identity, owned)| {
            let fields = Value::from(owned.fields().to_json());
            (identity.manager.clone(), vec![Value::from(owned.api_version.clone()), fields].into())
        });
        Value::Object(managed.collect::<Map>())
    }
}

/// The result of a failed write in the notation of the cases.
fn failure_text(failure: Failure) -> Value {
    match failure {
        Failure::Other(message) => message.into(),
        Failure::Untyped => "untyped".into(),
        Failure::Conflict(conflicts) => {
            let causes = conflicts.into_error().status().details.unwrap_or_default().causes;
            let failure_text = causes.into_iter().map(|cause| {
                let manager = cause.message.trim_start_matches("conflict with ").replace('"', "");
                format!("{manager} {}", cause.field)
            });
            let mut failure_text: Vec<String> = failure_text.collect();
            failure_text.sort();
            failure_text.into()
        }
    }
}

fn run(case: &Value, schemas: &BTreeMap<String, Schema>, failures: &mut Vec<String>) {
    let text = |value: &Value, member: &str| {
        value.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let reset = case.get("reset").and_then(|reset| reset.get("v1")).and_then(Value::as_str);
    let reset = FieldSet::from_json(reset.unwrap_or("{}")).expect("a set is FieldsV1");
    let filter = Filter::Except(reset);
    let ops = case.get("ops").and_then(Value::as_array).unwrap_or_default();
    let mut state = State { live: Value::Null, version: String::new(), managers: Managers::new() };
    for (at, op) in ops.iter().enumerate() {
        if text(op, "op") == "schema" {
            continue;
        }
        // All versions of a case are types of one schema.
        let mut schema = schemas[&text(op, "schema")].clone();
        let mut types = BTreeMap::new();
        for other in ops.iter().filter(|other| text(other, "op") != "schema") {
            let expression = match text(other, "schema") == text(op, "schema") {
                true => text(other, "type"),
                false => text(op, "type"),
            };
            let (with, ty) = schemas::with_type(&schema, &expression);
            schema = with;
            types.insert(text(other, "version"), ty);
        }
        if let Some(served) = op.get("served").and_then(Value::as_array) {
            types.retain(|version, _| served.contains(&version.as_str().into()));
        }
        let converter = Converter { schema, types, sort: text(case, "versions") };
        let kind = Kind { versions: &converter, filter: &filter };
        let (manager, version) = (text(op, "manager"), text(op, "version"));
        let outcome = state.write(kind, op, &manager, &version);
        if outcome.is_ok() && op.get("managed").is_none() {
            continue;
        }
        let (found, expected) = match outcome {
            Ok(()) => (
                vec![state.live.clone(), state.managed()],
                vec![
                    op.get("live").cloned().unwrap_or_default(),
                    op.get("managed").cloned().unwrap_or_default(),
                ],
            ),
            Err(failure) => {
                let expected = op.get("conflicts").or(op.get("error"));
                (vec![failure_text(failure)], vec![expected.cloned().unwrap_or_default()])
            }
        };
        let (found, expected) = (Value::from(found), Value::from(expected));
        if found != expected {
            let (found, expected) = (json::to_string(&found), json::to_string(&expected));
            failures.push(format!("{} at {at}\n  {found}\n  {expected}", text(case, "name")));
            return;
        }
    }
}

#[test]
fn matches_upstream() {
    let file = include_str!("../../../testdata/server_side/managers.yaml");
    let (schemas, cases) = schemas::cases(file);
    let mut failures = Vec::new();
    for case in &cases {
        run(case, &schemas, &mut failures);
    }
    report(&failures);
}
