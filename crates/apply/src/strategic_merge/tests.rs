//! Upstream's cases, and properties that hold for any patch.

mod schema;

use pintle_value::{Map, Str, Value, json};
use proptest::prelude::*;

use super::apply;
use crate::{Error, tests::check_rows};
use schema::schema;

fn patched(ty: &str, original: &Value, patch: &[u8]) -> Result<Value, Error> {
    let schema = schema();
    let ty = schema.find(ty).expect("it is a type of the schema");
    apply(&schema, ty, original, patch).map(|patched| patched.value)
}

/// The cases of upstream's `strategicpatch` tests, with upstream's results.
#[test]
fn matches_upstream() {
    let rows = include_str!("../../testdata/strategic_merge.jsonl");
    for ty in ["MergeItem", "PrecisionItem"] {
        let marker = format!("{{\"type\":\"{ty}\"");
        let rows: Vec<&str> = rows.lines().filter(|row| row.starts_with(&marker)).collect();
        assert!(!rows.is_empty());
        check_rows(&rows.join("\n"), |original, patch| patched(ty, original, patch));
    }
}

#[test]
fn errors_match_upstream() {
    for (original, patch, message) in [
        (
            r#"{"simpleMap":{"k":{}}}"#,
            r#"{"simpleMap":{"k":{"x":1}}}"#,
            "merging an object in json but data type is not struct, instead is: map",
        ),
        (
            r#"{"zap":{}}"#,
            r#"{"zap":{"x":1}}"#,
            r#"unable to find api field in struct MergeItem for the json field "zap""#,
        ),
        (
            r#"{"mergingList":[[1]]}"#,
            r#"{"mergingList":[[2]]}"#,
            "lists of lists are not supported",
        ),
        (
            r#"{"mergingIntList":[1]}"#,
            r#"{"mergingIntList":["a"]}"#,
            "list element types are not identical: [[1] [a]]",
        ),
        (
            r#"{"mergingIntList":[{"a":1}]}"#,
            r#"{"mergingIntList":[{"b":1}]}"#,
            "cannot merge lists without merge key for struct",
        ),
        (
            "{}",
            r#"{"$patch":"zap","a":[1,null]}"#,
            "unknown patch type: zap in map: map[$patch:zap a:[1 <nil>]]",
        ),
        ("{}", r#"{"$patch":1}"#, "unknown patch type: %!s(int64=1) in map: map[$patch:1]"),
        ("{}", r#"{"$patch":null}"#, "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]"),
        (
            r#"{"mergingList":[{"name":"a"}]}"#,
            r#"{"mergingList":[{"$patch":"merge"}]}"#,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            r#"{"mergingList":[{"name":"a"}]}"#,
            r#"{"mergingList":[{"$patch":"delete","value":"a"}]}"#,
            "map: map[$patch:delete value:a] does not contain declared merge key: name",
        ),
        (
            r#"{"mergingList":[]}"#,
            r#"{"$setElementOrder/mergingList":[{"name":"a"}]}"#,
            "no elements in any of the given slices",
        ),
        (
            "{}",
            r#"{"$setElementOrder/mergingList":"a"}"#,
            "expected a []interface {}, but received a string",
        ),
        (
            r#"{"mergingList":[{"name":"a"}]}"#,
            r#"{"$setElementOrder/mergingList":[{"name":"a"},"b"]}"#,
            "value for key 1 is not a map",
        ),
        (
            r#"{"mergingList":[{"name":"a"}]}"#,
            r#"{"$setElementOrder/mergingList":["a"],"mergingList":[{"name":"a"}]}"#,
            "expected a map[string]interface {}, but received a string",
        ),
        ("{}", r#"{"$setElementOrder/name":[1]}"#, "expected slice or array type, but got: struct"),
        (
            r#"{"retainKeysMap":{"name":"a"}}"#,
            r#"{"retainKeysMap":{"$retainKeys":["name"],"value":"b"}}"#,
            "invalid patch format of retainKeys",
        ),
    ] {
        let original = json::parse(original.as_bytes()).unwrap();
        let error = patched("MergeItem", &original, patch.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), message, "{patch}");
    }
}

/// Members that the type has, with values of the right shape; with `directives`, also directives
/// and nulls.
fn item(directives: bool) -> BoxedStrategy<Value> {
    let text = || "[abc]".prop_map(Value::from);
    let numbers = || {
        let numbers = prop::collection::btree_set(0..4_i64, 0..4);
        numbers.prop_map(|set| Value::from(set.into_iter().collect::<Vec<_>>())).prop_shuffle_list()
    };
    let leaf = members(vec![("name", text().boxed()), ("value", text().boxed())], directives);
    leaf.prop_recursive(2, 12, 3, move |inner| {
        let list = || named(prop::collection::vec(inner.clone(), 0..4));
        let mut fields = vec![
            ("name", text().boxed()),
            ("value", text().boxed()),
            ("mergingList", list().boxed()),
            ("nonMergingList", list().boxed()),
            ("mergingIntList", numbers().boxed()),
        ];
        if directives {
            let directive = "replace|delete|merge|zap".prop_map(Value::from);
            fields.push(("$patch", directive.boxed()));
            let keys = prop::collection::vec("name|value|mergingList", 0..3);
            fields.push(("$retainKeys", keys.prop_map(Value::from).boxed()));
            fields.push(("$setElementOrder/mergingList", list().boxed()));
            fields.push(("$setElementOrder/mergingIntList", numbers().boxed()));
            fields.push(("$deleteFromPrimitiveList/mergingIntList", numbers().boxed()));
        }
        members(fields, directives)
    })
    .boxed()
}

/// Lists of items whose names all exist and are distinct.
fn named(list: impl Strategy<Value = Vec<Value>>) -> impl Strategy<Value = Value> {
    (list, Just(["a", "b", "c", "d"]).prop_shuffle()).prop_map(|(mut list, names)| {
        for (item, name) in list.iter_mut().zip(names) {
            item.make_object().insert("name", name);
        }
        Value::Array(list)
    })
}

trait ShuffleList: Strategy<Value = Value> + Sized {
    fn prop_shuffle_list(self) -> impl Strategy<Value = Value> {
        self.prop_map(|list| list.as_array().unwrap_or_default().to_vec())
            .prop_shuffle()
            .prop_map(Value::Array)
    }
}

impl<S: Strategy<Value = Value>> ShuffleList for S {}

/// Some of the members; with `nulls`, a few of them null.
fn members(fields: Vec<(&'static str, BoxedStrategy<Value>)>, nulls: bool) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            let value = (value, 0..10).prop_map(move |(value, die)| match die {
                0 if nulls => Some(Value::Null),
                0..6 => Some(value),
                _ => None,
            });
            value.prop_map(move |value| Some((Str::from(name), value?)))
        })
        .collect();
    let members = fields.prop_map(|members| members.into_iter().flatten().collect::<Map>());
    members.prop_map(Value::Object).boxed()
}

fn names(list: Option<&Value>) -> Vec<&str> {
    let list = list.and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(|item| item.str_at(&["name"])).collect()
}

proptest! {
    #[test]
    fn applying_a_patch_is_idempotent(original in item(false), patch in item(false)) {
        let patch = json::to_string(&patch);
        let once = patched("MergeItem", &original, patch.as_bytes()).unwrap();
        prop_assert_eq!(patched("MergeItem", &once, patch.as_bytes()), Ok(once), "{}", patch);
    }

    /// A patched list has the patch's items in the patch's order; items that the patch does not
    /// name keep their order.
    #[test]
    fn patched_lists_have_the_order_of_the_patch_then_of_the_list(original in item(false), patch in item(false)) {
        let text = json::to_string(&patch);
        let merged = patched("MergeItem", &original, text.as_bytes()).unwrap();
        let [before, wanted, after] =
            [&original, &patch, &merged].map(|item| names(item.get("mergingList")));
        let retained = |list: &[&str], of: &[&str]| -> Vec<String> {
            list.iter().filter(|name| of.contains(name)).map(ToString::to_string).collect()
        };
        prop_assert_eq!(retained(&after, &wanted), wanted.clone());
        let others: Vec<&str> = before.iter().copied().filter(|n| !wanted.contains(n)).collect();
        prop_assert_eq!(retained(&after, &others), others.clone());
        prop_assert_eq!(after.len(), wanted.len() + others.len());
    }

    #[test]
    fn arbitrary_patches_do_not_panic(original in item(false), patch in item(true)) {
        let _ = patched("MergeItem", &original, json::to_string(&patch).as_bytes());
    }

    #[test]
    fn members_of_wrong_types_do_not_panic(
        original in "[\\[\\]{},:1]{0,20}",
        key in r"(\$setElementOrder/|\$deleteFromPrimitiveList/|)(mergingList|mergingIntList|simpleMap|name|x)",
        value in r#"(\[|\{"name":|\{"\$patch":"delete","name":|1|null|,|\]|\}){0,12}"#,
    ) {
        let original = format!(r#"{{"mergingList":{original}}}"#);
        let original = json::parse(original.as_bytes()).unwrap_or_else(|_| Value::object());
        let patch = format!(r#"{{"{key}":{value}}}"#);
        let _ = patched("MergeItem", &original, patch.as_bytes());
    }
}
