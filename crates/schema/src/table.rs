//! The data structure of a schema: a flat table of types that refer to each other by index.
//!
//! As the table is flat, the built-in one is a constant in the binary (nothing is parsed or
//! allocated at start-up), and recursive types (`JSONSchemaProps`) need no special case.

mod index;

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, OnceLock},
};

pub(crate) use index::{Names, is_lossy};

use index::Index;

/// An index into [`Schema::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// A closed, immutable set of types.
///
/// A schema that is made at run time *extends* the built-in one: its types can refer to the
/// built-in types, and their ids follow the ids of the built-in types. The types of custom
/// resources are *structural*: decoding keeps a value of a wrong type, because validation rejects
/// it later.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The schema that this one extends.
    base: Option<&'static Schema>,
    /// Whether the schema's own types are structural.
    structural: bool,
    own: Own,
    /// Computed on first use.
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
    Ready(Types),
    /// Types that are made on first use, since most custom resources are rarely used.
    Lazy(Arc<LazyTypes>),
}

struct LazyTypes {
    types: OnceLock<Types>,
    make: Box<dyn Fn() -> Types + Send + Sync>,
}

impl fmt::Debug for LazyTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.types.fmt(f)
    }
}

/// One type.
#[derive(Clone, Debug)]
pub struct Type {
    /// The name of the OpenAPI definition (`io.k8s.api.core.v1.PodSpec`); empty for the scalars,
    /// lists and maps of fields. A variant of a named struct with another `map_type` has the same
    /// name.
    pub name: Cow<'static, str>,
    /// The shape of the type's values.
    pub shape: Shape,
}

/// The shape of a type's values.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A single value.
    Scalar(Scalar),
    /// An object with known members.
    Struct {
        /// The members in declaration order, in which they are written to JSON.
        fields: Cow<'static, [Field]>,
        /// Indices into `fields`, sorted by JSON name.
        by_name: Cow<'static, [u16]>,
        /// How members that are not among the fields are treated.
        unknown: Unknown,
        /// Whether the members can have different owners.
        map_type: MapType,
    },
    /// An object with arbitrary keys.
    Map {
        /// The type of its values.
        value: TypeId,
        /// Whether the entries can have different owners.
        map_type: MapType,
    },
    /// A list.
    List {
        /// The type of its items.
        item: TypeId,
        /// How items are identified.
        list_type: ListType,
    },
}

/// The types of scalars, by how they are validated and encoded.
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
    /// `resource.Quantity`: text or a number in JSON; stored as canonical text.
    Quantity,
    /// `metav1.Time`: RFC 3339, whole seconds, UTC.
    Time,
    /// `metav1.MicroTime`: RFC 3339 with six fractional digits.
    MicroTime,
    /// `metav1.Duration`: text such as `1h30m`.
    Duration,
    /// A number or a string.
    IntOrString,
    /// An object with `apiVersion` and `kind`, stored unchanged (`runtime.RawExtension`).
    RawExtension,
    /// The fields of a manager (`FieldsV1`): any value, stored as raw JSON.
    Fields,
    /// Any value (`JSON`).
    Any,
}

/// One member of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// The JSON name. Outside of structural schemas it has no character that JSON escapes.
    pub name: Cow<'static, str>,
    /// Its type.
    pub ty: TypeId,
    /// How a missing or zero value is treated.
    pub presence: Presence,
    /// Whether OpenAPI declares it as required.
    pub required: bool,
    /// The Protobuf field number; 0 if it has none.
    pub tag: u32,
    /// The field numbers of the enclosing messages, outermost first, where Go embeds a struct: JSON
    /// has its members inline, Protobuf has a message. Empty for most fields.
    pub inside: Cow<'static, [u32]>,
    /// The strategic merge patch strategy.
    pub patch: Patch,
    /// The declared default.
    pub default: Option<Default>,
    /// The declared validation rules.
    pub rules: Cow<'static, [Rule]>,
}

/// How Go's encoder treats a missing or zero value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A pointer with `omitempty`: kept as given, zero values included.
    Pointer,
    /// A plain value with `omitempty`: a zero value (`""`, 0, false, empty list or map) is omitted.
    OmitZero,
    /// A list or map with `omitempty` for which upstream's validation distinguishes empty from
    /// absent. An empty value is kept until the object is stored
    /// ([`drop_empty`](crate::drop_empty)).
    Distinct,
    /// No `omitempty`, or a struct by value: a missing value is written as the zero value (`""`, 0,
    /// false, `null` for lists, maps and times, `{}` for structs with their own members of this
    /// kind).
    Always,
    /// A pointer without `omitempty`: a missing value is written as `null`.
    Null,
}

/// How list items are identified (`x-kubernetes-list-type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Items are not identified: the list is a single value.
    Atomic,
    /// By their value; items are scalars.
    Set,
    /// By the values of these members; items are objects.
    Map(Cow<'static, [Cow<'static, str>]>),
}

/// How members that a struct does not declare are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// They are dropped and reported to the client.
    Drop,
    /// They are kept unchanged (`x-kubernetes-preserve-unknown-fields`).
    Keep,
}

/// Whether the members of an object can have different owners (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// Each member can have its own owner.
    Granular,
    /// The object is a single value.
    Atomic,
}

/// How a strategic merge patch treats a field (`x-kubernetes-patch-strategy` and `-merge-key`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The items of a list are merged, not replaced.
    pub merge: bool,
    /// An object is replaced, not merged (upstream's strategy `replace`).
    pub replace: bool,
    /// Members of the object that the patch does not name are removed.
    pub retain_keys: bool,
    /// The member that identifies items; empty for lists of scalars.
    pub merge_key: Cow<'static, str>,
}

impl Patch {
    /// The strategy that merges objects and replaces lists.
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

/// A declared validation rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// The text is empty or one of these (upstream's `+enum` types). For a list, each item is.
    Enum(Cow<'static, [Cow<'static, str>]>),
    /// The number is at least this.
    Minimum(i64),
    /// The number is at most this.
    Maximum(i64),
    /// The text has at least this number of characters.
    MinLength(u32),
    /// The text has at most this number of characters.
    MaxLength(u32),
    /// The text has at most this number of bytes.
    MaxBytes(u32),
    /// The list or map has at most this number of items.
    MaxItems(u32),
    /// The text has a named format (upstream's `+k8s:format`).
    Format(Cow<'static, str>),
    /// An update cannot set, change or remove the value (upstream's `+k8s:immutable`).
    Immutable,
}

impl Schema {
    /// A schema of these types only; `names` is sorted by name.
    pub const fn new(
        types: Cow<'static, [Type]>,
        names: Cow<'static, [(Cow<'static, str>, TypeId)]>,
    ) -> Self {
        let own = Own::Ready(Types { types, names });
        Self { base: None, structural: false, own, index: OnceLock::new() }
    }

    /// A schema that extends `base` by types of the same kind (not structural). Their ids follow
    /// those of `base`.
    pub(crate) fn extended(base: &'static Schema, types: Types) -> Self {
        let own = Own::Ready(types);
        Self { base: Some(base), structural: false, own, index: OnceLock::new() }
    }

    /// A schema that extends `base` by structural types that are made on first use. The ids of its
    /// own types begin at [`Schema::first_own`] of the new schema.
    pub fn extending(
        base: &'static Schema,
        make: impl Fn() -> Types + Send + Sync + 'static,
    ) -> Self {
        let lazy = LazyTypes { types: OnceLock::new(), make: Box::new(make) };
        let own = Own::Lazy(Arc::new(lazy));
        Self { base: Some(base), structural: true, own, index: OnceLock::new() }
    }

    #[inline]
    fn own(&self) -> &Types {
        match &self.own {
            Own::Ready(types) => types,
            Own::Lazy(lazy) => lazy.types.get_or_init(|| (lazy.make)()),
        }
    }

    /// The schema that this one extends.
    pub(crate) const fn base(&self) -> Option<&'static Schema> {
        self.base
    }

    /// The schema's own types, without those of the schema that it extends.
    #[inline]
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

    /// Whether decoding keeps a value that does not match the type `ty`.
    #[inline]
    pub fn is_structural(&self, ty: TypeId) -> bool {
        self.structural && ty >= self.first_own()
    }

    #[inline]
    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Arc::new(Index::of(self)))
    }

    /// The type at `id`.
    ///
    /// # Panics
    /// Never for an id of this schema. A table is closed, as a test checks for the built-in one and
    /// construction ensures for compiled ones.
    #[inline]
    pub fn get(&self, id: TypeId) -> &Type {
        match self.base {
            None => &self.types()[id.0 as usize],
            Some(base) => match id.0.checked_sub(self.first_own().0) {
                None => base.get(id),
                Some(own) => &self.types()[own as usize],
            },
        }
    }

    /// The id of the named type.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        match self.names().binary_search_by(|(n, _)| n.as_ref().cmp(name)) {
            Ok(i) => Some(self.names()[i].1),
            Err(_) => self.base?.find(name),
        }
    }

    /// The member `name` of a struct type; `None` for undeclared members and other shapes.
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
