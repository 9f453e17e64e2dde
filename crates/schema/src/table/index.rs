//! Derived data of a schema, computed once, so that walks over objects only visit the relevant
//! fields: a hash table of each struct's field names, the fields with a default, with a rule or
//! that are always written, and the fields in Protobuf order.

use std::ops::Range;

use super::{Field, Presence, Schema, Shape, TypeId};

/// The index of a schema. A field is identified by its *rank*: its position in `by_name`.
#[derive(Debug)]
pub(crate) struct Index {
    /// The index of the extended schema, which has the types before `first`.
    base: Option<&'static Index>,
    first: TypeId,
    /// The entries of the types, by id.
    types: Vec<TypeIndex>,
    /// The lists of all types, concatenated.
    ranks: Vec<u16>,
}

/// The derived data of one type; the lists are empty except for structs.
#[derive(Clone, Debug, Default)]
struct TypeIndex {
    /// A hash table of field names; its length is a power of two.
    names: Range<u32>,
    always_written: Range<u32>,
    defaulted: Range<u32>,
    validated: Range<u32>,
    lossy: Range<u32>,
    tagged: Range<u32>,
    by_tag: Range<u32>,
    has_defaults: bool,
    has_rules: bool,
    has_lossy: bool,
}

/// The names of a struct's fields: a hash table of their ranks.
#[derive(Clone, Copy)]
pub(crate) struct Names<'i> {
    slots: &'i [u16],
    fields: &'i [Field],
    by_name: &'i [u16],
}

impl<'i> Names<'i> {
    /// The field of a rank.
    #[inline]
    pub(crate) fn field(&self, rank: u16) -> &'i Field {
        &self.fields[usize::from(self.by_name[usize::from(rank)])]
    }

    /// The field of a rank that may be too high.
    #[inline]
    pub(crate) fn by_rank(&self, rank: u16) -> Option<&'i Field> {
        self.fields.get(usize::from(*self.by_name.get(usize::from(rank))?))
    }

    /// The field at a position in the order in which the fields are declared.
    #[inline]
    pub(crate) fn declared(&self, position: usize) -> Option<&'i Field> {
        self.fields.get(position)
    }

    /// The position of the field `name` in the order in which the fields are declared.
    #[inline]
    pub(crate) fn position(&self, name: &str) -> Option<u16> {
        self.rank(name).map(|rank| self.by_name[usize::from(rank)])
    }

    /// The rank of the field `name`.
    #[inline]
    pub(crate) fn rank(&self, name: &str) -> Option<u16> {
        let last = self.slots.len().checked_sub(1)?;
        let mut at = hash(name) as usize & last;
        loop {
            let rank = *self.slots.get(at)?;
            if rank == FREE {
                return None;
            }
            if *self.field(rank).name == *name {
                return Some(rank);
            }
            at = (at + 1) & last;
        }
    }
}

/// An empty slot of a table.
const FREE: u16 = u16::MAX;

/// Protobuf field numbers below this are looked up in a table.
const TAGS: usize = 64;

impl Index {
    /// Computes the index of a schema.
    pub(crate) fn of(schema: &Schema) -> Self {
        let types = vec![TypeIndex::default(); schema.types().len()];
        let (base, first) = (schema.base().map(Schema::index), schema.first_own());
        let mut index = Self { base, first, types, ranks: Vec::new() };
        while index.propagate_flags(schema) {}
        for (at, ty) in schema.types().iter().enumerate() {
            if let Shape::Struct { fields, by_name, .. } = &ty.shape {
                index.add_struct(schema, at, fields, by_name);
            }
        }
        index
    }

    /// The rank of the field `name` of a struct type.
    #[inline]
    pub(crate) fn rank(
        &self,
        ty: TypeId,
        fields: &[Field],
        by_name: &[u16],
        name: &str,
    ) -> Option<u16> {
        self.names(ty, fields, by_name).rank(name)
    }

    /// The names of the fields of a struct type.
    #[inline]
    pub(crate) fn names<'i>(
        &'i self,
        ty: TypeId,
        fields: &'i [Field],
        by_name: &'i [u16],
    ) -> Names<'i> {
        Names { slots: self.list(ty, |known| &known.names), fields, by_name }
    }

    /// The fields of a struct that are written even if they are missing, by name.
    #[inline]
    pub(crate) fn always_written(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.always_written)
    }

    /// The fields of a struct that have a default, by name.
    pub(crate) fn defaulted(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.defaulted)
    }

    /// The fields of a struct that have a rule, are required, or contain such fields, by name.
    pub(crate) fn validated(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.validated)
    }

    /// The fields of a struct whose empty value Protobuf cannot represent ([`is_lossy`]), or that
    /// contain such fields, by name.
    pub(crate) fn lossy(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.lossy)
    }

    /// The fields of a struct that Protobuf has, ordered by field number, preceded by the numbers
    /// of the enclosing messages.
    pub(crate) fn tagged(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.tagged)
    }

    /// The field of a struct with this Protobuf field number in the struct's own message.
    #[inline]
    pub(crate) fn rank_of_tag(&self, ty: TypeId, tag: u32) -> Option<u16> {
        let rank = *self.list(ty, |known| &known.by_tag).get(tag as usize)?;
        (rank != FREE).then_some(rank)
    }

    /// Whether the type or a type in it has a default.
    pub(crate) fn has_defaults(&self, ty: TypeId) -> bool {
        self.known(ty).1.has_defaults
    }

    /// Whether the type or a type in it has a rule or a required field.
    pub(crate) fn has_rules(&self, ty: TypeId) -> bool {
        self.known(ty).1.has_rules
    }

    /// Whether the type contains a field whose empty value Protobuf cannot represent.
    pub(crate) fn has_lossy(&self, ty: TypeId) -> bool {
        self.known(ty).1.has_lossy
    }

    /// The entry of a type, and the index that contains it.
    #[inline]
    fn known(&self, ty: TypeId) -> (&Self, &TypeIndex) {
        match self.base {
            Some(base) if ty < self.first => base.known(ty),
            _ => (self, &self.types[(ty.0 - self.first.0) as usize]),
        }
    }

    #[inline]
    fn list(&self, ty: TypeId, list: impl Fn(&TypeIndex) -> &Range<u32>) -> &[u16] {
        let (index, known) = self.known(ty);
        index.ranks_in(list(known))
    }

    #[inline]
    fn ranks_in(&self, range: &Range<u32>) -> &[u16] {
        &self.ranks[range.start as usize..range.end as usize]
    }

    /// Propagates the flags of types to the types that contain them. Returns whether anything
    /// changed.
    fn propagate_flags(&mut self, schema: &Schema) -> bool {
        let mut has_changed = false;
        for (at, ty) in schema.types().iter().enumerate() {
            let flags = match &ty.shape {
                Shape::Scalar(_) => [false; 3],
                Shape::List { item: ty, .. } | Shape::Map { value: ty, .. } => self.flags(*ty),
                Shape::Struct { fields, .. } => {
                    fields.iter().fold([false; 3], |[defaults, rules, lossy], field| {
                        let [has_defaults, has_rules, has_lossy] = self.flags(field.ty);
                        [
                            defaults || field.default.is_some() || has_defaults,
                            rules || has_rule(field) || has_rules,
                            lossy || is_lossy(schema, field) || has_lossy,
                        ]
                    })
                }
            };
            let known = &mut self.types[at];
            has_changed |= [known.has_defaults, known.has_rules, known.has_lossy] != flags;
            [known.has_defaults, known.has_rules, known.has_lossy] = flags;
        }
        has_changed
    }

    /// Whether a type has defaults, rules, and lossy fields.
    fn flags(&self, ty: TypeId) -> [bool; 3] {
        let known = self.known(ty).1;
        [known.has_defaults, known.has_rules, known.has_lossy]
    }

    fn add_struct(&mut self, schema: &Schema, at: usize, fields: &[Field], by_name: &[u16]) {
        let field = |rank: u16| &fields[usize::from(by_name[usize::from(rank)])];
        // Field indices have 16 bits, so no type has more fields.
        let ranks = 0..u16::try_from(by_name.len()).unwrap_or(FREE);
        let names = self.add_names(ranks.clone().map(|rank| field(rank).name.as_ref()));
        let always_written = self.add(
            ranks
                .clone()
                .filter(|rank| matches!(field(*rank).presence, Presence::Always | Presence::Null)),
        );
        let defaulted = self.add(ranks.clone().filter(|rank| field(*rank).default.is_some()));
        let validated: Vec<u16> = ranks
            .clone()
            .filter(|rank| has_rule(field(*rank)) || self.has_rules(field(*rank).ty))
            .collect();
        let validated = self.add(validated.into_iter());
        let lossy: Vec<u16> = ranks
            .clone()
            .filter(|rank| is_lossy(schema, field(*rank)) || self.has_lossy(field(*rank).ty))
            .collect();
        let lossy = self.add(lossy.into_iter());
        let mut tagged: Vec<u16> = ranks.filter(|rank| field(*rank).tag != 0).collect();
        tagged.sort_by_cached_key(|rank| [&*field(*rank).inside, &[field(*rank).tag]].concat());
        let mut by_tag = Vec::new();
        for rank in tagged.iter().filter(|rank| field(**rank).inside.is_empty()) {
            let tag = field(*rank).tag as usize;
            if tag < TAGS {
                by_tag.resize(by_tag.len().max(tag + 1), FREE);
                by_tag[tag] = *rank;
            }
        }
        let (tagged, by_tag) = (self.add(tagged.into_iter()), self.add(by_tag.into_iter()));
        let known = &mut self.types[at];
        *known = TypeIndex {
            names,
            always_written,
            defaulted,
            validated,
            lossy,
            tagged,
            by_tag,
            ..known.clone()
        };
    }

    fn add(&mut self, ranks: impl Iterator<Item = u16>) -> Range<u32> {
        let start = self.ranks.len() as u32;
        self.ranks.extend(ranks);
        start..self.ranks.len() as u32
    }

    /// Creates a hash table that is at most half full.
    fn add_names<'n>(&mut self, names: impl ExactSizeIterator<Item = &'n str>) -> Range<u32> {
        let len = (2 * names.len()).next_power_of_two();
        let mut slots = vec![FREE; len];
        for (rank, name) in (0..).zip(names) {
            let mut at = hash(name) as usize & (len - 1);
            while slots[at] != FREE {
                at = (at + 1) & (len - 1);
            }
            slots[at] = rank;
        }
        self.add(slots.into_iter())
    }
}

/// Whether a field is a list or a map whose empty value Protobuf cannot represent, although JSON
/// can.
pub(crate) fn is_lossy(schema: &Schema, field: &Field) -> bool {
    matches!(field.presence, Presence::Always | Presence::Distinct)
        && field.tag != 0
        && matches!(schema.get(field.ty).shape, Shape::List { .. } | Shape::Map { .. })
}

fn has_rule(field: &Field) -> bool {
    field.required || !field.rules.is_empty()
}

/// Hashes a name. A few of its bytes suffice to distinguish the names of a struct.
#[inline]
fn hash(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let sampled = (bytes.first(), bytes.get(bytes.len() / 2), bytes.last());
    let (Some(first), Some(middle), Some(last)) = sampled else { return 0 };
    let wide = |byte: &u8| u32::from(*byte);
    let len = bytes.len() as u32;
    let sample = wide(first) | wide(middle) << 8 | wide(last) << 16 | len << 24;
    sample.wrapping_mul(0x9e37_79b1) >> 16
}

#[cfg(test)]
mod tests {
    use crate::builtin;

    use super::*;

    #[test]
    fn only_declared_names_are_found() {
        let schema = builtin();
        let index = Index::of(schema);
        for (id, ty) in (0..).map(TypeId).zip(schema.types().iter()) {
            let Shape::Struct { fields, by_name, .. } = &ty.shape else { continue };
            for (rank, &i) in (0..).zip(by_name.iter()) {
                let name = &fields[usize::from(i)].name;
                assert!(name.bytes().all(|b| b.is_ascii_graphic() && !b"\"\\".contains(&b)));
                assert_eq!(index.rank(id, fields, by_name, name), Some(rank), "{}", ty.name);
                assert_eq!(index.rank(id, fields, by_name, &format!("{name}x")), None);
            }
            assert_eq!(index.rank(id, fields, by_name, ""), None);
        }
    }

    #[test]
    fn flags_propagate_to_containing_types() {
        let schema = builtin();
        let index = Index::of(schema);
        let of = |name: &str| schema.find(name).unwrap();
        assert!(index.has_defaults(of("io.k8s.api.apps.v1.Deployment")), "ports have protocols");
        assert!(!index.has_defaults(of("io.k8s.api.core.v1.ConfigMap")));
        assert!(index.has_rules(of("io.k8s.api.core.v1.PodSpec")));
        assert!(!index.has_rules(of("io.k8s.api.core.v1.Capabilities")));
    }
}
