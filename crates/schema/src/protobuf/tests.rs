use pintle_value::{DEPTH_MAX, json};
use proptest::prelude::*;

use super::{LIST_TAIL, decode, encode, encode_event, list_head, list_item, read_event};
use crate::{Error, Format, TypeId, builtin};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const CRD: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";

fn find(name: &str) -> TypeId {
    builtin().find(name).unwrap_or_else(|| panic!("no type {name}"))
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A field of bytes.
fn run(tag: u64, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let (bytes, mut out) = (bytes.as_ref(), Vec::new());
    varint(tag << 3 | 2, &mut out);
    varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

/// A field of a number.
fn int(tag: u64, number: i64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(tag << 3, &mut out);
    varint(number.cast_unsigned(), &mut out);
    out
}

fn enveloped(raw: &[u8]) -> Vec<u8> {
    [b"k8s\0", &run(2, raw)[..]].concat()
}

/// Checks that a message of the type decodes to the JSON, or fails with the error.
#[track_caller]
fn check(ty: &str, message: &[u8], expected: Result<&str, &str>) {
    let found = decode(builtin(), find(ty), &enveloped(message));
    let found = found.map_err(|error| error.to_string());
    let expected = expected.map_err(str::to_owned).map(|text| {
        crate::decode(builtin(), find(ty), text.as_bytes(), Format::Json).unwrap().value
    });
    assert_eq!(found, expected, "{ty} {message:?}");
}

/// Checks a member of ObjectMeta.
#[track_caller]
fn check_meta(message: &[u8], expected: &str) {
    check(META, message, Ok(expected));
}

#[test]
fn scalar_members() {
    check_meta(&[], "{}");
    check_meta(&run(1, "web"), r#"{"name":"web"}"#);
    check_meta(&[run(1, "old"), run(1, "new")].concat(), r#"{"name":"new"}"#);
    // Go's decoder does not validate the text; its JSON encoder replaces each invalid byte.
    check_meta(&run(1, b"a\xff\xc3"), r#"{"name":"a\ufffd\ufffd"}"#);
    check_meta(&[int(7, 3), run(6, "")].concat(), r#"{"generation":3}"#);
    check_meta(&int(10, -1), r#"{"deletionGracePeriodSeconds":-1}"#);
    check_meta(&int(10, 0), r#"{"deletionGracePeriodSeconds":0}"#);
    check_meta(&[run(14, "a"), run(14, "b")].concat(), r#"{"finalizers":["a","b"]}"#);
    // GRP-04: fields that the schema does not know are skipped, groups included.
    let unknown = [int(100, 1), run(101, "x"), vec![0xb3, 6, 8, 1, 0xb4, 6], run(1, "web")];
    check_meta(&unknown.concat(), r#"{"name":"web"}"#);
}

#[test]
fn maps_are_messages_of_entries() {
    let entry = |key: &str, value: &str| run(11, [run(1, key), run(2, value)].concat());
    let labels = [entry("b", "1"), entry("a", "2"), entry("b", "3")].concat();
    check_meta(&labels, r#"{"labels":{"a":"2","b":"3"}}"#);
    check_meta(&run(11, ""), r#"{"labels":{"":""}}"#);
    // Lists and bytes that an entry lacks are empty.
    let review = "io.k8s.api.authorization.v1.SubjectAccessReviewSpec";
    check(review, &run(5, run(1, "k")), Ok(r#"{"extra":{"k":[]}}"#));
    let map = "io.k8s.api.core.v1.ConfigMap";
    check(map, &run(3, run(1, "k")), Ok(r#"{"binaryData":{"k":""}}"#));
    let items = run(24, run(1, run(29, run(1, "k"))));
    let schema = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    check(schema, &items, Ok(r#"{"items":{"properties":{"k":{}}}}"#));
}

#[test]
fn parts_of_messages_are_merged() {
    let map = "io.k8s.api.core.v1.ConfigMap";
    let entry = |tag: u64, key: &str, value: &str| run(tag, [run(1, key), run(2, value)].concat());
    let parts = [
        run(1, [run(1, "a"), entry(11, "b", "1"), run(14, "x")].concat()),
        entry(2, "d", "1"),
        run(1, [int(7, 3), entry(11, "a", "2"), run(14, "y")].concat()),
        entry(2, "c", "2"),
        run(1, [run(1, "b"), entry(11, "b", "3")].concat()),
    ];
    let expected = r#"{"metadata":{"name":"b","generation":3,"labels":{"a":"2","b":"3"},
        "finalizers":["x","y"]},"data":{"c":"2","d":"1"}}"#;
    check(map, &parts.concat(), Ok(expected));
    // Each part is a message of its own.
    let cut = [run(1, [0x0a, 2, b'a']), run(1, "b")].concat();
    check(map, &cut, Err("unexpected EOF"));
    let schema = [run(28, run(5, "a")), run(28, run(2, "b"))].concat();
    let props = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    check(props, &schema, Ok(r#"{"not":{"type":"a","$schema":"b"}}"#));
    let items = run(24, [run(1, run(5, "a")), run(1, run(1, "b"))].concat());
    check(props, &items, Ok(r#"{"items":{"id":"b","type":"a"}}"#));
}

#[test]
fn times() {
    check_meta(&run(8, ""), "{}");
    check_meta(&run(9, ""), "{}");
    check_meta(&run(8, int(1, 0)), r#"{"creationTimestamp":"1970-01-01T00:00:00Z"}"#);
    let late = [int(1, 1_700_000_000), int(2, 999_999_999)].concat();
    check_meta(&run(8, &late), r#"{"creationTimestamp":"2023-11-14T22:13:20Z"}"#);
    check_meta(&run(8, int(1, -62_135_596_800)), "{}");
    let micro = run(2, run(3, &late));
    check(
        "io.k8s.api.coordination.v1.Lease",
        &micro,
        Ok(r#"{"spec":{"acquireTime":"2023-11-14T22:13:20.999999Z"}}"#),
    );
    let refused = Err("Time.MarshalJSON: year outside of range [0,9999]");
    check(META, &run(8, int(1, i64::MAX)), refused);
    check(META, &run(8, int(1, i64::MIN)), refused);
    check(META, &run(8, int(2, -1)), refused);
}

#[test]
fn scalar_messages() {
    let port = |target: Vec<u8>| run(2, run(1, run(4, target)));
    let service = "io.k8s.api.core.v1.Service";
    let text = [int(1, 1), run(3, "http")].concat();
    check(service, &port(text), Ok(r#"{"spec":{"ports":[{"port":0,"targetPort":"http"}]}}"#));
    let number = [int(1, 0), int(2, 80), run(3, "")].concat();
    check(service, &port(number), Ok(r#"{"spec":{"ports":[{"port":0,"targetPort":80}]}}"#));

    let quota = |text: &str| run(2, run(1, [run(1, "cpu"), run(2, run(1, text))].concat()));
    let kind = "io.k8s.api.core.v1.ResourceQuota";
    check(kind, &quota("1000m"), Ok(r#"{"spec":{"hard":{"cpu":"1"}}}"#));
    let refused = "quantities must match the regular expression \
                   '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    check(kind, &quota("x"), Err(refused));

    let secret = run(2, [run(1, "k"), run(2, b"\0\xff")].concat());
    check("io.k8s.api.core.v1.Secret", &secret, Ok(r#"{"data":{"k":"AP8="}}"#));

    let extra = run(5, [run(1, "k"), run(2, [run(1, "a"), run(1, "b")].concat())].concat());
    let review = "io.k8s.api.authorization.v1.SubjectAccessReview";
    check(review, &run(2, extra), Ok(r#"{"spec":{"extra":{"k":["a","b"]}}}"#));

    let verbs = run(4, run(1, "get"));
    let resource = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResource";
    check(resource, &verbs, Ok(r#"{"verbs":["get"]}"#));

    let managed = run(17, run(7, run(1, r#"{"f:spec":{}}"#)));
    check_meta(&managed, r#"{"managedFields":[{"fieldsV1":{"f:spec":{}}}]}"#);
    let refused = Err("invalid character 'x' looking for beginning of value");
    check(META, &run(17, run(7, run(1, "x"))), refused);
}

#[test]
fn numbers_may_be_packed() {
    let context = |groups: Vec<u8>| run(2, run(14, groups));
    let expected =
        r#"{"spec":{"containers":null,"securityContext":{"supplementalGroups":[1,300]}}}"#;
    let pod = "io.k8s.api.core.v1.Pod";
    check(pod, &context([int(4, 1), int(4, 300)].concat()), Ok(expected));
    check(pod, &context(run(4, [1, 0xac, 2])), Ok(expected));
    check(pod, &context(run(4, [0x80])), Err("unexpected EOF"));
}

#[test]
fn embedded_messages_are_inline() {
    // A Volume has its source as field 2, which is a message only in Protobuf.
    let volume = |source: Vec<u8>| run(2, run(1, [run(1, "v"), run(2, source)].concat()));
    let expected =
        r#"{"spec":{"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}],"containers":null}}"#;
    check("io.k8s.api.core.v1.Pod", &volume(run(2, run(1, "Memory"))), Ok(expected));
}

#[test]
fn union_types_are_decoded() {
    // CustomResourceDefinition.spec.versions[0].schema.openAPIV3Schema
    let crd = |schema: Vec<u8>| run(2, run(7, run(4, run(1, schema))));
    let check = |schema: Vec<u8>, expected: &str| {
        let names = r#""group":"","names":{"plural":"","kind":""},"scope":"""#;
        let version = r#""name":"","served":false,"storage":false"#;
        let expected = format!(
            r#"{{"spec":{{{names},"versions":[{{{version},"schema":{{"openAPIV3Schema":{expected}}}}}]}}}}"#
        );
        check(CRD, &crd(schema), Ok(&expected));
    };
    let plain = [run(1, ""), run(5, "string"), int(10, 0)].concat();
    let string = r#"{"type":"string"}"#;
    check(plain.clone(), string);
    check(run(24, run(1, &plain)), &format!(r#"{{"items":{string}}}"#));
    check(
        run(24, [run(2, &plain), run(2, &plain)].concat()),
        &format!(r#"{{"items":[{string},{string}]}}"#),
    );
    check(run(30, int(1, 1)), r#"{"additionalProperties":true}"#);
    check(run(30, int(1, 0)), r#"{"additionalProperties":false}"#);
    check(
        run(30, [int(1, 1), run(2, &plain)].concat()),
        &format!(r#"{{"additionalProperties":{string}}}"#),
    );
    let entry = run(32, [run(1, "k"), run(2, run(2, "x"))].concat());
    check(entry, r#"{"dependencies":{"k":["x"]}}"#);
    let maximum = [vec![9 << 3 | 1], 3.0_f64.to_le_bytes().to_vec()].concat();
    check(run(24, run(1, maximum)), r#"{"items":{"maximum":3}}"#);
    check(run(8, run(1, "[1]")), r#"{"default":[1]}"#);
}

#[test]
fn the_envelope_names_the_kind() {
    // MT-10
    let type_meta = run(1, [run(1, "v1"), run(2, "ConfigMap")].concat());
    let raw = run(2, run(1, run(1, "web")));
    let rest = [run(3, ""), run(4, "")].concat();
    let bytes = [b"k8s\0", &type_meta[..], &raw, &rest].concat();
    let check = |ty, expected: &str| {
        let found = decode(builtin(), find(ty), &bytes);
        assert_eq!(found, Ok(json::parse(expected.as_bytes()).unwrap()), "{ty}");
    };
    let expected = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}"#;
    check("io.k8s.api.core.v1.ConfigMap", expected);
    let expected = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#;
    check("io.k8s.api.core.v1.Secret", expected);
}

#[track_caller]
fn check_error(bytes: &[u8], expected: &str) {
    let error = decode(builtin(), find(META), bytes).unwrap_err();
    assert_eq!(error.to_string(), expected, "{bytes:?}");
}

#[test]
fn broken_bytes_are_rejected() {
    let no_prefix = "provided data does not appear to be a protobuf message, expected prefix \
                     [107 56 115 0]";
    check_error(b"", "empty data");
    check_error(b"{}", no_prefix);
    check_error(b"k8s\x01", no_prefix);
    check_error(b"k8s\0", "empty body");
    check_error(b"k8s\0\x12", "unexpected EOF");
    check_error(b"k8s\0\x12\x05abcd", "unexpected EOF");
    check_error(&enveloped(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]), "unexpected EOF");
    check_error(
        &enveloped(&[&[0x0a][..], &[0xff; 9], &[1]].concat()),
        "proto: negative length found during unmarshaling",
    );
    check_error(&enveloped(&[0xff; 11]), "proto: integer overflow");
    check_error(&enveloped(&[0]), "proto: illegal tag 0 (wire type 0)");
    check_error(&enveloped(&[0x0f]), "proto: illegal wireType 7");
    check_error(&enveloped(&[0x0c]), "proto: wiretype end group for non-group");
    check_error(&enveloped(&[0x0b]), "unexpected EOF");
    check_error(&enveloped(&int(1, 1)), "proto: wrong wireType = 0 for field Name");
    check_error(&enveloped(&run(7, "")), "proto: wrong wireType = 2 for field Generation");
}

#[test]
fn depth_is_bounded() {
    // JSONSchemaProps.not is a schema, too.
    let nested = |levels: usize| {
        let schema = (0..levels).fold(Vec::new(), |inner, _| run(28, inner));
        let crd = run(2, run(7, run(4, run(1, schema))));
        decode(builtin(), find(CRD), &enveloped(&crd))
    };
    assert!(nested(100).is_ok());
    let depth = Err(Error::Syntax(pintle_value::Error::Depth));
    assert_eq!(nested(DEPTH_MAX), depth);
    assert_eq!(nested(20_000), depth);
}

#[test]
fn lists_are_assembled_from_encoded_items() {
    let list = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},
                   "items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#;
    let list = json::parse(list.as_bytes()).unwrap();
    let items = list.get("items").and_then(pintle_value::Value::as_array).unwrap();
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    let item = find("io.k8s.api.core.v1.ConfigMap");
    let messages = items.iter().map(|value| {
        let mut out = Vec::new();
        let message = encode(builtin(), item, value, &mut out);
        out[list_item(message)].to_vec()
    });
    let items: Vec<u8> = messages.flatten().collect();
    list_head(builtin(), &list, items.len(), &mut found);
    found.extend(items);
    found.extend(LIST_TAIL);
    encode(builtin(), find("io.k8s.api.core.v1.ConfigMapList"), &list, &mut expected);
    assert_eq!(found, expected);
}

#[test]
fn events_are_preceded_by_their_length() {
    // OAS-15
    let mut out = b"x".to_vec();
    encode_event("ADDED", b"k8s\0y", &mut out);
    assert_eq!(out, b"x\0\0\0\x10\n\x05ADDED\x12\x07\n\x05k8s\0y");
    assert_eq!(read_event(&out[5..]), Ok(("ADDED".to_owned(), &b"k8s\0y"[..])));
    assert!(read_event(b"\n\x05AD").is_err());
}

#[test]
fn any_tree_can_be_encoded() {
    // Values that do not match their fields are written as zero values.
    let ty = find(META);
    let odd = r#"{"name":1,"generation":"x","labels":[1],"finalizers":{},"creationTimestamp":"x"}"#;
    let mut out = Vec::new();
    encode(builtin(), ty, &json::parse(odd.as_bytes()).unwrap(), &mut out);
    assert_eq!(decode(builtin(), ty, &out), Ok(pintle_value::Value::object()));
}

#[test]
fn union_types_are_encoded() {
    let schema = r#"{"items":{"type":"string"},"additionalProperties":{"maximum":0.5},"not":{"items":[{"type":"a"},{"type":"b"}]},"additionalItems":false,"dependencies":{"a":["b"],"c":{"type":"d"}},"default":{"x":[1]},"enum":[1,"a"]}"#;
    let ty = find("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
    let value = json::parse(schema.as_bytes()).unwrap();
    let mut out = Vec::new();
    encode(builtin(), ty, &value, &mut out);
    assert_eq!(decode(builtin(), ty, &out), Ok(value));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn arbitrary_bytes_do_not_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        ty in 0..builtin().names().len(),
    ) {
        let ty = builtin().names()[ty].1;
        if let Ok(value) = decode(builtin(), ty, &enveloped(&bytes)) {
            let mut conformed = value.clone();
            prop_assert_eq!(crate::conform(builtin(), ty, &mut conformed), Ok(Vec::new()));
            prop_assert_eq!(conformed, value);
        }
    }
}
