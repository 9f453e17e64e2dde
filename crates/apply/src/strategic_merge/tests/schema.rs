//! The types of upstream's cases.

use std::borrow::Cow;

use pintle_schema::{
    Field, ListType, MapType, Patch, Presence, Scalar, Schema, Shape, Type, TypeId, Unknown,
};

const TEXT: TypeId = TypeId(0);
const NUMBER: TypeId = TypeId(1);
const NUMBERS: TypeId = TypeId(2);
const TEXTS: TypeId = TypeId(3);
const RAW: TypeId = TypeId(4);
const ITEM: TypeId = TypeId(5);
const ITEMS: TypeId = TypeId(6);
const RETAINED: TypeId = TypeId(7);
const PRECISION: TypeId = TypeId(8);

const REPLACE: Patch = Patch::REPLACE;

fn merge(merge_key: &'static str) -> Patch {
    Patch { merge: true, merge_key: Cow::Borrowed(merge_key), ..Patch::REPLACE }
}

fn item() -> Shape {
    structure(vec![
        ("name", TEXT, REPLACE),
        ("value", TEXT, REPLACE),
        ("other", TEXT, REPLACE),
        ("mergingList", ITEMS, merge("name")),
        ("nonMergingList", ITEMS, REPLACE),
        ("mergingIntList", NUMBERS, merge("")),
        ("nonMergingIntList", NUMBERS, REPLACE),
        // A pointer to an item upstream, although its cases fill it with lists.
        ("mergeItemPtr", ITEMS, merge("name")),
        ("simpleMap", TEXTS, REPLACE),
        ("replacingItem", RAW, Patch { replace: true, ..REPLACE }),
        ("jsonItem", RAW, REPLACE),
        ("retainKeysMap", RETAINED, Patch { retain_keys: true, ..REPLACE }),
        ("retainKeysMergingList", ITEMS, Patch { retain_keys: true, ..merge("name") }),
    ])
}

fn retained() -> Shape {
    structure(vec![
        ("name", TEXT, REPLACE),
        ("value", TEXT, REPLACE),
        ("other", TEXT, REPLACE),
        ("simpleMap", TEXTS, REPLACE),
        ("mergingIntList", NUMBERS, merge("")),
        ("mergingList", ITEMS, merge("name")),
        ("nonMergingList", ITEMS, REPLACE),
    ])
}

fn precision() -> Shape {
    let numbers = ["int32", "int64", "float32", "float64"].map(|name| (name, NUMBER, REPLACE));
    structure([vec![("name", TEXT, REPLACE)], numbers.to_vec()].concat())
}

pub(super) fn schema() -> Schema {
    let list = |item| Shape::List { item, list_type: ListType::Atomic };
    let named = |name: &'static str, shape| Type { name: name.into(), shape };
    let types = vec![
        named("", Shape::Scalar(Scalar::String)),
        named("", Shape::Scalar(Scalar::Float64)),
        named("", list(NUMBER)),
        named("", Shape::Map { value: TEXT, map_type: MapType::Granular }),
        named("", Shape::Scalar(Scalar::Any)),
        named("MergeItem", item()),
        named("", list(ITEM)),
        named("RetainKeysMergeItem", retained()),
        named("PrecisionItem", precision()),
    ];
    let names = [("MergeItem", ITEM), ("PrecisionItem", PRECISION)];
    Schema::new(types.into(), names.map(|(name, ty)| (Cow::Borrowed(name), ty)).to_vec().into())
}

fn structure(fields: Vec<(&'static str, TypeId, Patch)>) -> Shape {
    let mut by_name: Vec<u16> = (0..fields.len() as u16).collect();
    by_name.sort_by_key(|&i| fields[usize::from(i)].0);
    let fields: Vec<Field> = fields
        .into_iter()
        .map(|(name, ty, patch)| Field {
            name: name.into(),
            ty,
            presence: Presence::OmitZero,
            required: false,
            tag: 0,
            inside: Cow::Borrowed(&[]),
            patch,
            default: None,
            rules: Cow::Borrowed(&[]),
        })
        .collect();
    Shape::Struct {
        fields: fields.into(),
        by_name: by_name.into(),
        unknown: Unknown::Drop,
        map_type: MapType::Granular,
    }
}
