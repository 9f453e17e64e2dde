//! The form of a schema: a flat table of types that refer to each other by index.
//!
//! Flat, so that the built-in one can be a constant in the binary (nothing is parsed or allocated at
//! start-up) and recursion (`JSONSchemaProps`) needs nothing special.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::builtin::builtin;
use crate::index::Index;

/// An index into [`Schema::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// A closed set of types. It does not change once it is made.
///
/// A schema that is made at run time *extends* the built-in one: its types refer to that one's and
/// come after them. Those of custom resources are *structural*: a value of another type than theirs is
/// kept as it is, for it is their validation, not their decoding, that refuses it.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The schema that this one extends.
    base: Option<&'static Schema>,
    /// Whether the schema's own types are structural.
    structural: bool,
    own: Own,
    /// Worked out of the types when it is first needed.
    index: OnceLock<Arc<Index>>,
}

/// Types and their names.
#[derive(Clone, Debug)]
pub struct Types {
    /// Every type, named or not.
    pub types: Cow<'static, [Type]>,
    /// The named types, sorted by name.
    pub names: Cow<'static, [(Cow<'static, str>, TypeId)]>,
}

#[derive(Clone, Debug)]
enum Own {
    Made(Types),
    /// Made when they are first looked at: most custom resources are hardly ever used.
    Due(Arc<Due>),
}

struct Due {
    made: OnceLock<Types>,
    make: Box<dyn Fn() -> Types + Send + Sync>,
}

impl fmt::Debug for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.made.fmt(f)
    }
}

/// One type.
#[derive(Clone, Debug)]
pub struct Type {
    /// The OpenAPI definition's name (`io.k8s.api.core.v1.PodSpec`); empty for the scalars, lists and
    /// maps that stand in fields. A variant of a named struct (other `map_type`) has its name too.
    pub name: Cow<'static, str>,
    /// What its values look like.
    pub shape: Shape,
}

/// What the values of a type look like.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A single value.
    Scalar(Scalar),
    /// An object with known members.
    Struct {
        /// The members in declaration order: the order in which they are written to JSON.
        fields: Cow<'static, [Field]>,
        /// Indices into `fields`, sorted by JSON name.
        by_name: Cow<'static, [u16]>,
        /// What becomes of members that are not among the fields.
        unknown: Unknown,
        /// Whether its members have owners of their own.
        map_type: MapType,
    },
    /// An object with any keys.
    Map {
        /// The type of its values.
        value: TypeId,
        /// Whether its entries have owners of their own.
        map_type: MapType,
    },
    /// A list.
    List {
        /// The type of its items.
        item: TypeId,
        /// How its items are told apart.
        list_type: ListType,
    },
}

/// The kinds of single values, by how they are checked and encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Text.
    String,
    /// A boolean.
    Bool,
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// Any number.
    Float64,
    /// Bytes: base64 text in JSON.
    Bytes,
    /// `resource.Quantity`: text or a number in JSON; kept as canonical text.
    Quantity,
    /// `metav1.Time`: RFC 3339, whole seconds, UTC.
    Time,
    /// `metav1.MicroTime`: RFC 3339 with six fractional digits.
    MicroTime,
    /// `metav1.Duration`: text such as `1h30m`.
    Duration,
    /// A number or a string.
    IntOrString,
    /// Any object with `apiVersion` and `kind`, kept as it is (`runtime.RawExtension`).
    RawExtension,
    /// The fields that a manager owns (`FieldsV1`): any value, which stays unread.
    Fields,
    /// Any value at all (`JSON`).
    Any,
}

/// One member of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// The JSON name.
    pub name: Cow<'static, str>,
    /// Its type.
    pub ty: TypeId,
    /// What becomes of a missing or zero value.
    pub presence: Presence,
    /// Whether OpenAPI calls it required.
    pub required: bool,
    /// The Protobuf field number; 0 where there is none.
    pub tag: u32,
    /// The field numbers of the messages that the field stands in, outermost first, where Go embeds
    /// a struct: JSON has its members inline, Protobuf has a message. Empty for most fields.
    pub inside: Cow<'static, [u32]>,
    /// How a strategic merge patch treats it.
    pub patch: Patch,
    /// The default, where one is declared.
    pub default: Option<Default>,
    /// The declared rules for its value.
    pub rules: Cow<'static, [Rule]>,
}

/// What Go's encoding does with a field whose value is missing or zero, so that answers look as
/// upstream's do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A pointer with `omitempty`: present as given, zero values included.
    Pointer,
    /// A plain value with `omitempty`: a zero value (`""`, 0, false, empty list or map) is left out.
    OmitZero,
    /// A list or map with `omitempty` of which upstream's rules tell an empty one from none: what a client
    /// gave stays until the object is kept ([`forget_empty`](crate::forget_empty)).
    Distinct,
    /// No `omitempty`, or a struct by value: a missing one is written as its zero value
    /// (`""`, 0, false, `null` for lists, maps and times, `{}` for structs with their own members
    /// of this sort in them).
    Always,
    /// A pointer without `omitempty`: a missing one is written as `null`.
    Null,
}

/// How list items are told apart (`x-kubernetes-list-type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value.
    Atomic,
    /// Each scalar item is itself its key.
    Set,
    /// Items are objects with these members as keys.
    Map(Cow<'static, [Cow<'static, str>]>),
}

/// What becomes of members that a struct does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// They are dropped, and the client hears of it.
    Drop,
    /// They are kept as they are (`x-kubernetes-preserve-unknown-fields`).
    Keep,
}

/// Whether the members of an object have owners of their own (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// Each member is owned on its own.
    Granular,
    /// The object is one value.
    Atomic,
}

/// How a strategic merge patch treats a field (`x-kubernetes-patch-strategy` and `-merge-key`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Items of a list are merged, not replaced.
    pub merge: bool,
    /// An object is replaced, not merged (upstream's strategy `replace`).
    pub replace: bool,
    /// Members of the object that the patch does not name are dropped.
    pub retain_keys: bool,
    /// The member by which items are matched; empty for lists of scalars.
    pub merge_key: Cow<'static, str>,
}

impl Patch {
    /// Objects are merged and lists replaced.
    pub const REPLACE: Self =
        Self { merge: false, replace: false, retain_keys: false, merge_key: Cow::Borrowed("") };
}

/// A declared default.
#[derive(Clone, Debug, PartialEq)]
pub enum Default {
    /// A string.
    String(Cow<'static, str>),
    /// An integer.
    Int(i64),
    /// A boolean.
    Bool(bool),
    /// JSON text of an object, a list or anything else.
    Json(Cow<'static, str>),
}

/// A declared rule for a field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// The text is one of these (upstream's `+enum` types); of a list, each item is.
    Enum(Cow<'static, [Cow<'static, str>]>),
    /// The number is at least this.
    Minimum(i64),
    /// The number is at most this.
    Maximum(i64),
    /// The text has at least so many characters.
    MinLength(u32),
    /// The text has at most so many characters.
    MaxLength(u32),
    /// The text has at most so many bytes.
    MaxBytes(u32),
    /// The list has at most so many items.
    MaxItems(u32),
    /// The text has a named format (upstream's `+k8s:format`).
    Format(Cow<'static, str>),
    /// The value cannot change once set (upstream's `+k8s:immutable`).
    Immutable,
}

impl Schema {
    /// A schema of these types and no others; `names` is sorted by name.
    pub const fn new(
        types: Cow<'static, [Type]>,
        names: Cow<'static, [(Cow<'static, str>, TypeId)]>,
    ) -> Self {
        let own = Own::Made(Types { types, names });
        Self { base: None, structural: false, own, index: OnceLock::new() }
    }

    /// A schema that extends `base` by types of the same sort. Their ids begin after those of `base`.
    pub(crate) fn with(base: &'static Schema, types: Types) -> Self {
        let own = Own::Made(types);
        Self { base: Some(base), structural: false, own, index: OnceLock::new() }
    }

    /// A schema that extends `base` by structural types that are made when they are first looked at. The
    /// ids of its own types begin at [`Schema::first_own`] of that base.
    pub fn extending(
        base: &'static Schema,
        make: impl Fn() -> Types + Send + Sync + 'static,
    ) -> Self {
        let due = Due { made: OnceLock::new(), make: Box::new(make) };
        let own = Own::Due(Arc::new(due));
        Self { base: Some(base), structural: true, own, index: OnceLock::new() }
    }

    fn own(&self) -> &Types {
        match &self.own {
            Own::Made(types) => types,
            Own::Due(due) => due.made.get_or_init(|| (due.make)()),
        }
    }

    /// The schema that this one extends.
    pub(crate) const fn base(&self) -> Option<&'static Schema> {
        self.base
    }

    /// The schema's own types, without those of the schema that it extends.
    pub fn types(&self) -> &[Type] {
        &self.own().types
    }

    /// The names of the schema's own types, sorted.
    pub fn names(&self) -> &[(Cow<'static, str>, TypeId)] {
        &self.own().names
    }

    /// The id of the schema's first own type.
    pub fn first_own(&self) -> TypeId {
        TypeId(self.base.map_or(0, |base| base.first_own().0 + base.types().len() as u32))
    }

    /// Whether values of another type than `ty` are kept as they are.
    #[inline]
    pub fn is_structural(&self, ty: TypeId) -> bool {
        self.structural && ty >= self.first_own()
    }

    /// Whether the type is one of the built-in table, by itself or as what this schema extends.
    pub fn is_builtin(&self, ty: TypeId) -> bool {
        let table = self.base.unwrap_or(self);
        ty.0 < table.types().len() as u32
            && std::ptr::eq(table.types().as_ptr(), builtin().types().as_ptr())
    }

    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Arc::new(Index::of(self)))
    }

    /// The type at `id`.
    ///
    /// # Panics
    /// Never for an id of this schema: a table is closed (checked by a test for the built-in one and
    /// by construction for compiled ones).
    pub fn get(&self, id: TypeId) -> &Type {
        match self.base {
            None => &self.types()[id.0 as usize],
            Some(base) => match id.0.checked_sub(self.first_own().0) {
                None => base.get(id),
                Some(own) => &self.types()[own as usize],
            },
        }
    }

    /// The named type.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        match self.names().binary_search_by(|(n, _)| n.as_ref().cmp(name)) {
            Ok(i) => Some(self.names()[i].1),
            Err(_) => self.base?.find(name),
        }
    }

    /// The member `name` of a struct type; `None` for unknown members and other shapes.
    pub fn field(&self, id: TypeId, name: &str) -> Option<&Field> {
        let Shape::Struct { fields, by_name, .. } = &self.get(id).shape else { return None };
        let rank = self.index().rank(id, fields, by_name, name)?;
        Some(&fields[usize::from(by_name[usize::from(rank)])])
    }
}

impl Type {
    /// The member `name` of a struct.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let Shape::Struct { fields, by_name, .. } = &self.shape else { return None };
        let at =
            by_name.binary_search_by(|&i| fields[usize::from(i)].name.as_ref().cmp(name)).ok()?;
        Some(&fields[usize::from(by_name[at])])
    }
}
