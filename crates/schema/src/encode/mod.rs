//! Encodes trees as JSON: struct members in declaration order, map keys sorted.
//!
//! Every committed object is encoded here once.

#[cfg(test)]
mod tests;

use pintle_value::{
    Str, Value,
    json::{self, Compact, Layout, Pretty},
};

use crate::table::Names;
use crate::{Scalar, Schema, Shape, TypeId, props_or};

/// Writes compact JSON.
pub fn write(schema: &Schema, ty: TypeId, value: &Value, out: &mut Vec<u8>) {
    Writer::new(schema, Compact, out).value(ty, value);
}

/// Writes indented JSON, two spaces a level.
pub fn write_pretty(schema: &Schema, ty: TypeId, value: &Value, out: &mut Vec<u8>) {
    Writer::new(schema, Pretty::default(), out).value(ty, value);
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
    let metadata = schema.field(ty, GAP[0])?.ty;
    schema.field(metadata, GAP[1]).map(|_| metadata)
}

/// Writes an object of the type `root`, or its part of the type `ty`, with a gap at `path`.
fn write_with_gap(
    schema: &Schema,
    (root, ty): (TypeId, TypeId),
    value: &Value,
    path: &[&str],
    out: &mut Vec<u8>,
) -> Option<usize> {
    if schema.is_structural(root) {
        let mut gap = None;
        write_sorted(value, path, out, &mut gap);
        return gap;
    }
    let mut writer = Writer::new(schema, Compact, out);
    writer.with_gap(ty, value, path);
    writer.gap
}

/// Writes an object of a structural type with sorted members at every level, as upstream does for
/// objects without a Go type. The member that `path` names is written as by
/// [`Writer::with_gap`].
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

/// Writes values of the types of a schema in a layout.
struct Writer<'w, L> {
    schema: &'w Schema,
    layout: L,
    out: &'w mut Vec<u8>,
    /// The members of the structs that are being written, innermost last.
    slots: Vec<Slot>,
    /// The offset of the gap, once it is written.
    gap: Option<usize>,
}

impl<'w, L: Layout> Writer<'w, L> {
    const fn new(schema: &'w Schema, layout: L, out: &'w mut Vec<u8>) -> Self {
        Self { schema, layout, out, slots: Vec::new(), gap: None }
    }

    #[inline]
    fn value(&mut self, ty: TypeId, value: &Value) {
        match value {
            Value::Array(_) | Value::Object(_) => self.nested(ty, value),
            Value::String(text) => json::write_string(text, self.out),
            scalar => json::write_as(scalar, &mut self.layout, self.out),
        }
    }

    /// Writes a list or an object.
    fn nested(&mut self, ty: TypeId, value: &Value) {
        if self.schema.is_structural(ty) {
            return json::write_as(value, &mut self.layout, self.out);
        }
        match (&self.schema.get(ty).shape, value) {
            (Shape::Struct { fields, by_name, .. }, Value::Object(members)) => {
                let names = self.schema.index().names(ty, fields, by_name);
                self.members(names, members.as_slice(), &[]);
            }
            (Shape::Map { value: ty, .. }, Value::Object(members)) => {
                self.enclose(*b"{}", members.as_slice(), |writer, (key, member)| {
                    json::write_key(key, &mut writer.layout, writer.out);
                    writer.value(*ty, member);
                });
            }
            (Shape::List { item, .. }, Value::Array(items)) => self.items(*item, items),
            // A schema in a union type has the order of its type everywhere.
            (Shape::Scalar(Scalar::Any), _) if let Some(of) = props_or::of(self.schema, ty) => {
                match value.as_array() {
                    None => self.value(of.schema, value),
                    Some(items) => self.items(of.item(self.schema).unwrap_or(of.schema), items),
                }
            }
            _ => json::write_as(value, &mut self.layout, self.out),
        }
    }

    fn items(&mut self, ty: TypeId, items: &[Value]) {
        self.enclose(*b"[]", items, |writer, item| writer.value(ty, item));
    }

    /// Writes a value, with the gap at the end of `path`. Members that `path` names are written even
    /// if the tree lacks them.
    fn with_gap(&mut self, ty: TypeId, value: &Value, path: &[&str]) {
        if path.is_empty() {
            self.gap = Some(self.out.len() + 1);
            return self.out.extend_from_slice(b"\"\"");
        }
        let Shape::Struct { fields, by_name, .. } = &self.schema.get(ty).shape else {
            return self.value(ty, value);
        };
        let entries = value.as_object().map_or(&[][..], |members| members.as_slice());
        self.members(self.schema.index().names(ty, fields, by_name), entries, path);
    }

    /// Writes a struct, which has a gap if `path` is not empty.
    fn members(&mut self, names: Names<'_>, entries: &[(Str, Value)], path: &[&str]) {
        let begin = self.slots.len();
        self.order(names, entries, path.first().copied());
        let end = self.slots.len();
        self.enclose(*b"{}", begin..end, |writer, at| {
            let slot = writer.slots[at];
            let entry = entries.get(slot.entry());
            let Some(field) = names.declared(slot.field()) else {
                let Some((key, member)) = entry else { return };
                json::write_key(key, &mut writer.layout, writer.out);
                return json::write_as(member, &mut writer.layout, writer.out);
            };
            json::write_plain_key(&field.name, &mut writer.layout, writer.out);
            let member = entry.map_or(&Value::Null, |(_, member)| member);
            match path {
                [name, below @ ..] if *name == field.name => {
                    writer.with_gap(field.ty, member, below);
                }
                _ => writer.value(field.ty, member),
            }
        });
        self.slots.truncate(begin);
    }

    /// Appends the slots of a struct's entries, and one for the declared member `also` if the tree
    /// lacks it. Undeclared entries come last.
    fn order(&mut self, names: Names<'_>, entries: &[(Str, Value)], also: Option<&str>) {
        let is_missing = |name: &&str| entries.iter().all(|(key, _)| key != name);
        let also = also.filter(|name| names.rank(name).is_some() && is_missing(name));
        let keys = entries.iter().map(|(key, _)| key.as_str()).zip(0..);
        let begin = self.slots.len();
        self.slots.reserve(entries.len() + 1);
        for (name, entry) in keys.chain(also.map(|name| (name, Slot::NONE))) {
            let field = names.position(name);
            self.slots.push(Slot::new(field.map_or(Slot::NONE, u32::from), entry));
        }
        let slots = &mut self.slots[begin..];
        if !slots.is_sorted() {
            slots.sort_unstable();
        }
    }

    /// Writes a list or an object; `each` writes an item or a member.
    fn enclose<T>(
        &mut self,
        [open, close]: [u8; 2],
        inner: impl IntoIterator<Item = T>,
        each: impl Fn(&mut Self, T),
    ) {
        self.out.push(open);
        let mut first = true;
        for one in inner {
            self.layout.before(std::mem::take(&mut first), self.out);
            each(self, one);
        }
        if !first {
            self.layout.end(self.out);
        }
        self.out.push(close);
    }
}

/// The position of a member in the output: the field's index in the upper half, the index of the
/// tree's entry in the lower, so that sorting the numbers gives the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
