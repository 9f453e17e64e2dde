//! Encodes trees as JSON: struct members in declaration order, map keys sorted.
//!
//! Every committed object is encoded here once, so the walk allocates nothing for objects with
//! fewer than `INLINE` members.

#[cfg(test)]
mod tests;

use pintle_value::{
    Str, Value,
    json::{self, Compact, Layout, Pretty},
};

use crate::{Field, Scalar, Schema, Shape, TypeId, props_or};

/// Writes compact JSON.
pub fn write(schema: &Schema, ty: TypeId, value: &Value, out: &mut Vec<u8>) {
    write_as(schema, ty, value, &mut Compact, out);
}

/// Writes indented JSON, two spaces a level.
pub fn write_pretty(schema: &Schema, ty: TypeId, value: &Value, out: &mut Vec<u8>) {
    write_as(schema, ty, value, &mut Pretty::default(), out);
}

/// Writes compact JSON with `""` as `metadata.resourceVersion`. Returns the offset in `out` between
/// these quotes. If the type has no such member, writes nothing and returns `None`.
pub fn write_object(
    schema: &Schema,
    ty: TypeId,
    value: &Value,
    out: &mut Vec<u8>,
) -> Option<usize> {
    metadata_type(schema, ty)?;
    write_with_gap(schema, (ty, ty), value, GAP, out)
}

/// Writes the metadata of an object of type `ty` as [`write_object`] does.
pub fn write_metadata(
    schema: &Schema,
    ty: TypeId,
    metadata: &Value,
    out: &mut Vec<u8>,
) -> Option<usize> {
    write_with_gap(schema, (ty, metadata_type(schema, ty)?), metadata, &GAP[1..], out)
}

/// The path of the member in which the store writes the revision.
const GAP: &[&str] = &["metadata", "resourceVersion"];

/// The type of an object's metadata, if it has a resource version.
fn metadata_type(schema: &Schema, ty: TypeId) -> Option<TypeId> {
    let metadata = field_at(schema, ty, GAP[0])?.1.ty;
    field_at(schema, metadata, GAP[1])?;
    Some(metadata)
}

/// Writes an object of the type `root`, or its part of the type `ty`, with a gap at `path`.
fn write_with_gap(
    schema: &Schema,
    (root, ty): (TypeId, TypeId),
    value: &Value,
    path: &[&str],
    out: &mut Vec<u8>,
) -> Option<usize> {
    let mut gap = None;
    if schema.is_structural(root) {
        write_sorted(value, path, out, &mut gap);
    } else {
        write_members(schema, ty, value, path, &mut Compact, out, &mut gap);
    }
    gap
}

/// Writes an object of a structural type with sorted members at every level, as upstream does for
/// objects without a Go type. The member that `path` names is written as by [`write_members`].
fn write_sorted(value: &Value, path: &[&str], out: &mut Vec<u8>, gap: &mut Option<usize>) {
    let [name, rest @ ..] = path else {
        *gap = Some(out.len() + 1);
        return out.extend_from_slice(b"\"\"");
    };
    let entries = value.as_object().map_or(&[][..], |members| members.as_slice());
    let at = entries.partition_point(|(key, _)| key.as_str() < *name);
    let (before, after) = entries.split_at(at);
    let own = after.first().filter(|(key, _)| key == name).map(|(_, member)| member);
    let after = &after[usize::from(own.is_some())..];
    let others = |out: &mut Vec<u8>, entries: &[(Str, Value)]| {
        for (key, member) in entries {
            json::write_string(key, out);
            out.push(b':');
            json::write(member, out);
            out.push(b',');
        }
    };
    out.push(b'{');
    others(out, before);
    json::write_string(name, out);
    out.push(b':');
    write_sorted(own.unwrap_or(&Value::Null), rest, out, gap);
    out.push(b',');
    others(out, after);
    out.pop();
    out.push(b'}');
}

/// The member `name` of a struct type, and its index in declaration order.
fn field_at<'s>(schema: &'s Schema, ty: TypeId, name: &str) -> Option<(u16, &'s Field)> {
    let Shape::Struct { fields, by_name, .. } = &schema.get(ty).shape else { return None };
    let at = by_name[usize::from(schema.index().rank(ty, fields, by_name, name)?)];
    Some((at, &fields[usize::from(at)]))
}

fn write_as<L: Layout>(
    schema: &Schema,
    ty: TypeId,
    value: &Value,
    layout: &mut L,
    out: &mut Vec<u8>,
) {
    if schema.is_structural(ty) {
        return json::write_as(value, layout, out);
    }
    match (&schema.get(ty).shape, value) {
        (Shape::Struct { .. }, Value::Object(_)) => {
            write_members(schema, ty, value, &[], layout, out, &mut None);
        }
        (Shape::Map { value: ty, .. }, Value::Object(members)) => {
            json::write_map(members.as_slice(), layout, out, |(key, member), layout, out| {
                json::write_key(key, layout, out);
                write_as(schema, *ty, member, layout, out);
            });
        }
        (Shape::List { item: ty, .. }, Value::Array(items)) => {
            json::write_list(items, layout, out, |item, layout, out| {
                write_as(schema, *ty, item, layout, out);
            });
        }
        // A schema in a union type has the order of its type everywhere.
        (Shape::Scalar(Scalar::Any), Value::Object(_) | Value::Array(_))
            if let Some(of) = props_or::of(schema, ty) =>
        {
            match value.as_array() {
                None => write_as(schema, of.schema, value, layout, out),
                Some(items) => {
                    let item_ty = of.item(schema).unwrap_or(of.schema);
                    json::write_list(items, layout, out, |item, layout, out| {
                        write_as(schema, item_ty, item, layout, out);
                    });
                }
            }
        }
        _ => json::write_as(value, layout, out),
    }
}

/// Writes the members of a struct. A member that `path` names is written even if the tree lacks it:
/// as the gap at the end of the path, as a struct before.
fn write_members<L: Layout>(
    schema: &Schema,
    ty: TypeId,
    value: &Value,
    path: &[&str],
    layout: &mut L,
    out: &mut Vec<u8>,
    gap: &mut Option<usize>,
) {
    let Shape::Struct { fields, .. } = &schema.get(ty).shape else {
        return write_as(schema, ty, value, layout, out);
    };
    let entries = value.as_object().map_or(&[][..], |members| members.as_slice());
    let mut order = Order::default();
    let slots = order.fill(schema, ty, entries, path.first().copied());
    json::write_map(slots, layout, out, |&slot, layout, out| {
        let entry = entries.get(slot.entry());
        let Some(field) = fields.get(slot.field()) else {
            let Some((key, member)) = entry else { return };
            json::write_key(key, layout, out);
            return json::write_as(member, layout, out);
        };
        json::write_key(&field.name, layout, out);
        let member = entry.map_or(&Value::Null, |(_, member)| member);
        match path {
            [name] if *name == field.name => {
                *gap = Some(out.len() + 1);
                out.extend_from_slice(b"\"\"");
            }
            [name, rest @ ..] if *name == field.name => {
                write_members(schema, field.ty, member, rest, layout, out, gap);
            }
            _ => write_as(schema, field.ty, member, layout, out),
        }
    });
}

/// The maximum number of members that are ordered on the stack.
const INLINE: usize = 48;

/// The position of a member in the output: the field's index in the upper half, the index of the
/// tree's entry in the lower, so that sorting the numbers gives the order.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Slot(u64);

impl Slot {
    /// No field or entry has this index.
    const NONE: u32 = u32::MAX;

    const fn new(field: u32, entry: u32) -> Self {
        Self((field as u64) << 32 | entry as u64)
    }

    const fn field(self) -> usize {
        (self.0 >> 32) as usize
    }

    const fn entry(self) -> usize {
        self.0 as u32 as usize
    }
}

struct Order {
    inline: [Slot; INLINE],
    spilled: Vec<Slot>,
}

impl Default for Order {
    fn default() -> Self {
        Self { inline: [Slot(0); INLINE], spilled: Vec::new() }
    }
}

impl Order {
    /// Returns the slots of a struct's entries, and one for the member `also` if the tree lacks it.
    /// Undeclared entries come last.
    fn fill(
        &mut self,
        schema: &Schema,
        ty: TypeId,
        entries: &[(Str, Value)],
        also: Option<&str>,
    ) -> &[Slot] {
        let room = if entries.len() < INLINE {
            &mut self.inline[..]
        } else {
            self.spilled.resize(entries.len() + 1, Slot(0));
            &mut self.spilled[..]
        };
        for ((key, _), entry) in entries.iter().zip(0..) {
            let field = field_at(schema, ty, key).map_or(Slot::NONE, |(at, _)| u32::from(at));
            room[entry as usize] = Slot::new(field, entry);
        }
        let mut len = entries.len();
        if let Some(also) = also
            && let Some((at, _)) = field_at(schema, ty, also)
            && room[..len].iter().all(|slot| slot.field() != usize::from(at))
        {
            room[len] = Slot::new(u32::from(at), Slot::NONE);
            len += 1;
        }
        let slots = &mut room[..len];
        if !slots.is_sorted() {
            slots.sort_unstable();
        }
        slots
    }
}
