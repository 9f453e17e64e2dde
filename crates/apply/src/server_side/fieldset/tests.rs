//! Upstream's cases of sets, and a comparison with a naive model: a sorted set of paths.

use std::collections::BTreeSet;

use pintle_value::{Map, Str, Value, json};
use proptest::prelude::*;

use super::{FieldSet, Filter, PathElement, show};
use crate::server_side::tests::report;

#[test]
fn fields_v1_round_trips_as_upstream() {
    let file = include_str!("../../../testdata/server_side/fieldset.yaml");
    let file = pintle_value::yaml::parse(file.as_bytes()).expect("the file is YAML");
    let mut failures = Vec::new();
    for row in file.get("rows").and_then(Value::as_array).unwrap_or_default() {
        let text = |member: &str| row.get(member).and_then(Value::as_str);
        let fields = text("fields").expect("a row has fields");
        let found = match FieldSet::from_json(fields) {
            Err(_) => Value::from("refused"),
            Ok(set) => {
                let mut paths = Vec::new();
                set.for_each(|path| paths.push(show(path)));
                assert_eq!(paths.len(), set.len());
                let read = FieldSet::from_json(&set.to_json());
                assert_eq!(read.as_ref(), Ok(&set), "text loses nothing");
                let (json, leaves) = (set.to_json(), set.leaves().to_json());
                Value::from(vec![Value::from(json), leaves.into(), paths.into()])
            }
        };
        let written = text("written").unwrap_or(fields);
        let leaves = text("leaves").unwrap_or(written);
        let expected = match row.get("refused") {
            Some(_) => "refused".into(),
            None => {
                let paths = row.get("paths").cloned().unwrap_or_default();
                Value::from(vec![written.into(), leaves.into(), paths])
            }
        };
        if found != expected {
            let (found, expected) = (json::to_string(&found), json::to_string(&expected));
            failures.push(format!("{fields}\n  {found}\n  {expected}"));
        }
    }
    report(&failures);
}

#[test]
fn set_operations_match_upstream() {
    let file = include_str!("../../../testdata/server_side/fieldset.yaml");
    let file = pintle_value::yaml::parse(file.as_bytes()).expect("the file is YAML");
    let mut failures = Vec::new();
    for row in file.get("operations").and_then(Value::as_array).unwrap_or_default() {
        let text = |member: &str| row.get(member).and_then(Value::as_str).unwrap_or("{}");
        let set = |member: &str| FieldSet::from_json(text(member)).expect("a set is FieldsV1");
        let (a, b) = (set("a"), set("b"));
        let found = match text("do") {
            "union" => a.union(b),
            "intersection" => a.intersection(&b),
            "difference" => a.difference(&b),
            "recursive difference" => a.recursive_difference(&b),
            "leaves" => a.leaves(),
            "filter" => filter(row.get("paths")).retain(a),
            "equals" => {
                let equal = row.get("equal").and_then(Value::as_bool);
                assert_eq!(Some(a == b), equal, "{} and {}", a.to_json(), b.to_json());
                continue;
            }
            other => panic!("nothing does {other}"),
        };
        if found != set("set") {
            failures.push(format!("{}\n  {}", json::to_string(row), found.to_json()));
        }
    }
    report(&failures);
}

/// A filter that keeps only these paths.
fn filter(paths: Option<&Value>) -> Filter {
    let steps = |path: &Value| {
        let steps = path.as_array().unwrap_or_default().iter();
        steps.map(|step| &*step.as_str().expect("a step is text").to_owned().leak()).collect()
    };
    let paths = paths.and_then(Value::as_array).unwrap_or_default();
    let paths: Vec<Vec<&'static str>> = paths.iter().map(steps).collect();
    Filter::only(&paths.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

#[test]
fn paths_are_displayed_as_upstream() {
    let key = |fields: &[(&str, Value)]| {
        PathElement::key(fields.iter().map(|(k, v)| (Str::from(*k), v.clone())).collect())
    };
    let path = [
        PathElement::field("spec"),
        PathElement::field("containers"),
        key(&[("name", "c".into())]),
        PathElement::field("ports"),
        key(&[("protocol", "TCP".into()), ("containerPort", 80.into())]),
        PathElement::Value("a\"b".into()),
        PathElement::Value(Value::Float(1.5)),
        PathElement::Index(3),
    ];
    let shown =
        r#".spec.containers[name="c"].ports[containerPort=80,protocol="TCP"][="a\"b"][=1.5][3]"#;
    assert_eq!(show(&path), shown);
}

#[test]
fn orders_elements_by_sort_and_numbers_by_size() {
    let texts = [
        "f:anteater",
        "f:zebra",
        r#"k:{"goat":1}"#,
        r#"k:{"kite":1}"#,
        r#"k:{"kite":1,"kite-2":1}"#,
        r#"k:{"n":80}"#,
        r#"k:{"n":443}"#,
        r#"k:{"n":"a"}"#,
        "v:1.14",
        "v:1.5",
        "v:2",
        r#"v:"b-12""#,
        r#"v:"b-9""#,
        "v:false",
        "v:true",
        "v:[]",
        "v:[1]",
        "v:[1,1]",
        "v:[2]",
        "v:{}",
        r#"v:{"carotine":1}"#,
        r#"v:{"carotine":1,"ethanol":1}"#,
        r#"v:{"carotine":2}"#,
        r#"v:{"carotine":2,"ethanol":1}"#,
        r#"v:{"ethanol":1}"#,
        "v:null",
        "i:-1",
        "i:2",
        "i:10",
    ];
    let read = |text| PathElement::parse(text).expect("readable").expect("known");
    let elements: Vec<PathElement> = texts.iter().map(|text| read(text)).collect();
    assert!(elements.is_sorted());
    for (element, text) in elements.iter().zip(texts) {
        assert_eq!(written(element), quoted(text));
    }
    assert_eq!(read("v:1"), read("v:1.0"));
}

/// An element as a key of FieldsV1.
fn written(element: &PathElement) -> String {
    let json = set(&BTreeSet::from([vec![element.clone()]])).to_json();
    json.strip_prefix('{').and_then(|json| json.strip_suffix(":{}}")).unwrap_or(&json).to_owned()
}

fn quoted(text: &str) -> String {
    json::to_string(&Value::from(text))
}

type Path = Vec<PathElement>;

fn elements() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        4 => "[abc]".prop_map(|name| PathElement::field(&name)),
        1 => (0..3i64).prop_map(|n| PathElement::key(vec![("k".into(), n.into())])),
        1 => "[<\"é]".prop_map(|text| PathElement::Value(text.into())),
        1 => (0..2i64).prop_map(PathElement::Index),
    ]
}

/// Texts with and without characters that JSON escapes.
fn texts() -> impl Strategy<Value = String> {
    "[a-z]{0,20}|[a\"\\\\<\n\u{2028}é]{0,6}"
}

fn paths() -> impl Strategy<Value = BTreeSet<Path>> {
    prop::collection::btree_set(prop::collection::vec(elements(), 1..4), 0..12)
}

fn set(paths: &BTreeSet<Path>) -> FieldSet {
    let mut set = FieldSet::new();
    paths.iter().for_each(|path| set.insert(path.clone()));
    set
}

fn model(set: &FieldSet) -> BTreeSet<Path> {
    let mut paths = BTreeSet::new();
    set.for_each(|path| assert!(paths.insert(path.to_vec()), "a path comes once"));
    paths
}

proptest! {
    #[test]
    fn operations_agree_with_the_model(a in paths(), b in paths()) {
        let (x, y) = (set(&a), set(&b));
        prop_assert_eq!(model(&x), a.clone());
        prop_assert_eq!(x.len(), a.len());
        prop_assert_eq!(x.clone().union(y.clone()), set(&a.union(&b).cloned().collect()));
        prop_assert_eq!(x.intersection(&y), set(&a.intersection(&b).cloned().collect()));
        prop_assert_eq!(x.clone().difference(&y), set(&a.difference(&b).cloned().collect()));
        let begins = |path: &Path| (1..=path.len()).any(|len| b.contains(&path[..len]));
        let rest = a.iter().filter(|path| !begins(path)).cloned().collect();
        prop_assert_eq!(x.clone().recursive_difference(&y), set(&rest));
        let goes_on = |path: &Path| a.iter().any(|p| p.len() > path.len() && p.starts_with(path));
        let leaves = a.iter().filter(|path| !goes_on(path)).cloned().collect();
        prop_assert_eq!(x.clone().leaves(), set(&leaves));
        prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
        prop_assert!(a.iter().all(|path| x.has(path)));
        prop_assert_eq!(b.iter().all(|path| x.has(path)), b.is_subset(&a));
    }

    #[test]
    fn fields_v1_round_trips(a in paths()) {
        let a = set(&a);
        let text = a.to_json();
        prop_assert_eq!(FieldSet::from_json(&text), Ok(a.clone()));
        prop_assert!(a.is_contained_in(&text));
        // The order of the keys does not matter.
        let tree = json::parse(text.as_bytes()).expect("it writes JSON");
        prop_assert_eq!(FieldSet::from_json(&json::to_string(&tree)), Ok(a));
    }

    #[test]
    fn an_addition_to_text_equals_a_union(a in paths(), b in paths()) {
        let (a, b) = (set(&a), set(&b));
        let (text, united) = (a.to_json(), a.union(b.clone()).to_json());
        prop_assert_eq!(b.added_to(&text), Some(united), "{} and {}", text, b.to_json());
        // Other writers sort keys by their text, and may write keys of an unknown type.
        let tree = json::parse(text.as_bytes()).expect("it is JSON");
        for text in [json::to_string(&tree), text.replace("f:a", "x:a")] {
            let Some(found) = b.added_to(&text) else { continue };
            let united = FieldSet::from_json(&text).map(|before| before.union(b.clone()));
            prop_assert_eq!(FieldSet::from_json(&found), united, "{} and {}", text, b.to_json());
        }
    }

    /// Names and values are escaped twice: in the JSON of a key, and as a part of its text.
    #[test]
    fn elements_are_written_as_text_with_json(
        names in prop::collection::btree_set(texts(), 0..3),
        text in texts(),
        number in any::<i64>(),
    ) {
        let list = Value::from(vec![Value::from(&*text), number.into()]);
        let scalars = [Value::from(&*text), number.into(), Value::Float(0.5), true.into()];
        for value in scalars.into_iter().chain([Value::Null, Value::from([(&*text, list)])]) {
            let fields: Map = names.iter().map(|name| (name.into(), value.clone())).collect();
            let key = PathElement::key(fields.clone().into_iter().collect());
            let expected = format!("k:{}", json::to_string(&Value::Object(fields)));
            prop_assert_eq!(written(&key), quoted(&expected));
            let expected = format!("v:{}", json::to_string(&value));
            prop_assert_eq!(written(&PathElement::Value(value)), quoted(&expected));
        }
        prop_assert_eq!(written(&PathElement::field(&text)), quoted(&format!("f:{text}")));
        prop_assert_eq!(written(&PathElement::Index(number)), quoted(&format!("i:{number}")));
    }

    #[test]
    fn encoded_fields_intersect_sets_that_share_a_path(a in paths(), b in paths()) {
        let (x, y) = (set(&a), set(&b));
        prop_assert_eq!(x.is_contained_in(&y.to_json()), a.is_subset(&b));
        if x.may_intersect(&y.to_json()) {
            prop_assert!(!x.is_empty());
        } else {
            let apart = |p: &Vec<_>| !b.iter().any(|q| q.starts_with(p) || p.starts_with(q) && q == p);
            prop_assert!(a.iter().all(apart), "{x:?} {y:?}");
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in r#"[fkvi]:[{}"a1:.]{0,6}|\PC{0,4}"#) {
        let fields = Value::from([(text.as_str(), Value::object())]);
        let fields = json::to_string(&fields);
        if let Ok(set) = FieldSet::from_json(&fields) {
            let _ = set.may_intersect(&set.to_json());
        }
    }
}

/// Many small sets are united with a large one in little more than linear time.
#[test]
fn a_union_of_many_sets_has_all_their_paths() {
    let of = |names: std::ops::Range<usize>| {
        let names: Vec<String> = names.map(|name| format!(r#""f:n{name:06}":{{}}"#)).collect();
        FieldSet::from_json(&format!("{{{}}}", names.join(","))).expect("valid FieldsV1")
    };
    let mut sets = vec![of(0..120_000)];
    sets.extend((119_000..130_000).map(|name| of(name..name + 1)));
    assert_eq!(FieldSet::union_of(sets), of(0..130_000));
    assert_eq!(FieldSet::union_of(Vec::new()), FieldSet::new());
    assert_eq!(FieldSet::union_of(vec![of(3..5)]), of(3..5));
}
