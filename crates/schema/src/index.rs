//! What is worked out of a schema once, so that walks over objects touch only the fields that matter
//! to them: a hash table of each struct's names, which fields are written when they are missing, have
//! a default, or have a rule, and the order of Protobuf.

use std::ops::Range;

use crate::{Field, Presence, Schema, Shape, TypeId, omitempty::is_forgotten};

/// The index of a schema. Fields go by their *rank*, which is their position in `by_name`.
#[derive(Debug)]
pub(crate) struct Index {
    /// The index of the schema that this one extends, which has the types before `first`.
    base: Option<&'static Index>,
    first: TypeId,
    /// By type.
    types: Vec<TypeIndex>,
    /// The lists of all types, one behind the other.
    ranks: Vec<u16>,
}

/// What is known of one type; the lists are empty for all but structs.
#[derive(Clone, Debug, Default)]
struct TypeIndex {
    /// A hash table; its length is a power of two.
    names: Range<u32>,
    filled: Range<u32>,
    defaulted: Range<u32>,
    checked: Range<u32>,
    forgotten: Range<u32>,
    tagged: Range<u32>,
    by_tag: Range<u32>,
    has_defaults: bool,
    has_rules: bool,
    has_forgotten: bool,
}

/// A free slot of a table.
const FREE: u16 = u16::MAX;

/// The numbers of Protobuf that are looked up in a table are below this.
const TAGS: usize = 64;

impl Index {
    /// Works out the index of a schema.
    pub(crate) fn of(schema: &Schema) -> Self {
        let types = vec![TypeIndex::default(); schema.types().len()];
        let (base, first) = (schema.base().map(Schema::index), schema.first_own());
        let mut index = Self { base, first, types, ranks: Vec::new() };
        while index.spread_flags(schema) {}
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
        let slots = self.list(ty, |known| &known.names);
        let last = slots.len().checked_sub(1)?;
        let mut at = hash(name) as usize & last;
        loop {
            let rank = *slots.get(at)?;
            if rank == FREE {
                return None;
            }
            if *fields[usize::from(by_name[usize::from(rank)])].name == *name {
                return Some(rank);
            }
            at = (at + 1) & last;
        }
    }

    /// The fields of a struct that are written when they are missing, by name.
    pub(crate) fn filled(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.filled)
    }

    /// The fields of a struct that have a default, by name.
    pub(crate) fn defaulted(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.defaulted)
    }

    /// The fields of a struct that have a rule, are required, or hold such fields, by name.
    pub(crate) fn checked(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.checked)
    }

    /// The fields of a struct that are lists or maps which are omitted when they are empty, or hold such
    /// fields, by name.
    pub(crate) fn forgotten(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.forgotten)
    }

    /// The fields of a struct that Protobuf has, by number, with the numbers of the messages that they
    /// stand in before their own.
    pub(crate) fn tagged(&self, ty: TypeId) -> &[u16] {
        self.list(ty, |known| &known.tagged)
    }

    /// The field of a struct that has this number in Protobuf, in the struct's own message.
    #[inline]
    pub(crate) fn rank_of_tag(&self, ty: TypeId, tag: u32) -> Option<u16> {
        let rank = *self.list(ty, |known| &known.by_tag).get(tag as usize)?;
        (rank != FREE).then_some(rank)
    }

    /// Whether the type or anything in it has a default.
    pub(crate) fn has_defaults(&self, ty: TypeId) -> bool {
        self.known(ty).1.has_defaults
    }

    /// Whether the type or anything in it has a rule or a required field.
    pub(crate) fn has_rules(&self, ty: TypeId) -> bool {
        self.known(ty).1.has_rules
    }

    /// Whether anything in the type is a list or map that is omitted when it is empty.
    pub(crate) fn has_forgotten(&self, ty: TypeId) -> bool {
        self.known(ty).1.has_forgotten
    }

    /// What is known of a type, and the index that knows it.
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
        let range = list(known);
        &index.ranks[range.start as usize..range.end as usize]
    }

    /// Tells every type of what the types in it have; whether that was news to any.
    fn spread_flags(&mut self, schema: &Schema) -> bool {
        let mut news = false;
        for (at, ty) in schema.types().iter().enumerate() {
            let flags = match &ty.shape {
                Shape::Scalar(_) => [false; 3],
                Shape::List { item: ty, .. } | Shape::Map { value: ty, .. } => self.flags(*ty),
                Shape::Struct { fields, .. } => {
                    fields.iter().fold([false; 3], |[defaults, rules, forgotten], field| {
                        let [has_defaults, has_rules, has_forgotten] = self.flags(field.ty);
                        [
                            defaults || field.default.is_some() || has_defaults,
                            rules || has_rule(field) || has_rules,
                            forgotten || is_forgotten(schema, field) || has_forgotten,
                        ]
                    })
                }
            };
            let known = &mut self.types[at];
            news |= [known.has_defaults, known.has_rules, known.has_forgotten] != flags;
            [known.has_defaults, known.has_rules, known.has_forgotten] = flags;
        }
        news
    }

    /// Whether a type has defaults, rules, and fields that are omitted when empty.
    fn flags(&self, ty: TypeId) -> [bool; 3] {
        let known = self.known(ty).1;
        [known.has_defaults, known.has_rules, known.has_forgotten]
    }

    fn add_struct(&mut self, schema: &Schema, at: usize, fields: &[Field], by_name: &[u16]) {
        let field = |rank: u16| &fields[usize::from(by_name[usize::from(rank)])];
        // Fields go by 16-bit numbers, so no type has more.
        let ranks = 0..u16::try_from(by_name.len()).unwrap_or(FREE);
        let names = self.add_names(ranks.clone().map(|rank| field(rank).name.as_ref()));
        let filled = self.add(
            ranks
                .clone()
                .filter(|rank| matches!(field(*rank).presence, Presence::Always | Presence::Null)),
        );
        let defaulted = self.add(ranks.clone().filter(|rank| field(*rank).default.is_some()));
        let checked: Vec<u16> = ranks
            .clone()
            .filter(|rank| has_rule(field(*rank)) || self.has_rules(field(*rank).ty))
            .collect();
        let checked = self.add(checked.into_iter());
        let forgotten: Vec<u16> = ranks
            .clone()
            .filter(|rank| {
                is_forgotten(schema, field(*rank)) || self.has_forgotten(field(*rank).ty)
            })
            .collect();
        let forgotten = self.add(forgotten.into_iter());
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
            filled,
            defaulted,
            checked,
            forgotten,
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

    /// Makes a hash table that is at most half full.
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

fn has_rule(field: &Field) -> bool {
    field.required || !field.rules.is_empty()
}

/// A few bytes tell the names of a struct apart well enough.
#[inline]
fn hash(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let at = |i: usize| u32::from(bytes.get(i).copied().unwrap_or(0));
    let len = bytes.len();
    let sample = at(0) | at(len / 2) << 8 | at(len.wrapping_sub(1)) << 16 | (len as u32) << 24;
    sample.wrapping_mul(0x9e37_79b1) >> 16
}

#[cfg(test)]
mod tests {
    use crate::builtin;

    use super::*;

    #[test]
    fn every_name_is_found_and_no_other() {
        let schema = builtin();
        let index = Index::of(schema);
        for (id, ty) in (0..).map(TypeId).zip(schema.types().iter()) {
            let Shape::Struct { fields, by_name, .. } = &ty.shape else { continue };
            for (rank, &i) in (0..).zip(by_name.iter()) {
                let name = &fields[usize::from(i)].name;
                assert_eq!(index.rank(id, fields, by_name, name), Some(rank), "{}", ty.name);
                assert_eq!(index.rank(id, fields, by_name, &format!("{name}x")), None);
            }
            assert_eq!(index.rank(id, fields, by_name, ""), None);
        }
    }

    #[test]
    fn flags_reach_the_types_that_hold_others() {
        let schema = builtin();
        let index = Index::of(schema);
        let of = |name: &str| schema.find(name).unwrap();
        assert!(index.has_defaults(of("io.k8s.api.apps.v1.Deployment")), "ports have protocols");
        assert!(!index.has_defaults(of("io.k8s.api.core.v1.ConfigMap")));
        assert!(index.has_rules(of("io.k8s.api.core.v1.PodSpec")));
        assert!(!index.has_rules(of("io.k8s.api.core.v1.Capabilities")));
    }
}
