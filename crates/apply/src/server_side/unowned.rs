//! Merges an applied configuration without field ownership, for admission policies (upstream:
//! `plugin/policy/mutating/patch/smd.go`).

use pintle_schema::{ListType, MapType, Schema, Shape, TypeId};
use pintle_value::Value;

use super::fieldset::{PathElement, show};
use super::typed::{self, Typing};

/// Merges `applied` into `live`, both of the type `ty`. A configuration that sets an atomic list,
/// map or struct is an error, because it would silently drop the members that it does not name.
///
/// # Errors
/// Returns upstream's message if the configuration cannot be merged.
pub fn merge_unowned(
    schema: &Schema,
    ty: TypeId,
    live: &Value,
    applied: &Value,
) -> Result<Value, String> {
    let ty = Typing::new(schema, ty);
    typed::check(ty, applied, false)
        .map_err(|why| format!("failed to convert patch object to typed object: {why}"))?;
    let mut atomics = Vec::new();
    find_atomics(ty, applied, &mut Vec::new(), &mut atomics);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    typed::check(ty, live, true)
        .map_err(|why| format!("failed to convert original object to typed object: {why}"))?;
    let mut merged = live.clone();
    typed::merge(ty, &mut merged, applied)
        .map_err(|why| format!("failed to merge patch: {why}"))?;
    Ok(merged)
}

/// Collects the paths of atomic values. As upstream does, it does not descend into the entries of
/// maps.
fn find_atomics(
    ty: Typing<'_>,
    value: &Value,
    path: &mut Vec<PathElement>,
    found: &mut Vec<String>,
) {
    match (ty.shape(), value) {
        (
            Some(Shape::Struct { map_type, .. } | Shape::Map { map_type, .. }),
            Value::Object(members),
        ) => {
            if *map_type == MapType::Atomic {
                found.push(show(path));
            }
            for (name, value) in members.iter() {
                let (ty, role) = ty.member(name);
                if role == typed::Role::Field {
                    path.push(PathElement::field(name));
                    find_atomics(ty, value, path, found);
                    path.pop();
                }
            }
        }
        (Some(Shape::List { item, list_type }), Value::Array(items)) => {
            if *list_type == ListType::Atomic {
                found.push(show(path));
            }
            for (index, value) in (0..).zip(items) {
                path.push(PathElement::Index(index));
                find_atomics(ty.of(*item), value, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}
