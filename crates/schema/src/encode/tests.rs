use pintle_value::{Map, Value};

use super::*;
use crate::builtin;

const POD: &str = "io.k8s.api.core.v1.Pod";
const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";
const CONTAINER: &str = "io.k8s.api.core.v1.Container";

fn written(ty: &str, json: &str) -> String {
    let mut out = Vec::new();
    let value = json::parse(json.as_bytes()).unwrap();
    write(builtin(), builtin().find(ty).unwrap(), &value, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn members_are_written_in_declaration_order() {
    for (ty, json, expected) in [
        (
            CONFIG_MAP,
            r#"{"metadata":{"uid":"u","name":"n"},"kind":"ConfigMap","data":{"b":"","a":""},"apiVersion":"v1"}"#,
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","uid":"u"},"data":{"a":"","b":""}}"#,
        ),
        (
            CONTAINER,
            r#"{"zz":{"b":1,"a":2},"image":"i","args":["a"],"name":"n","aa":null}"#,
            r#"{"name":"n","image":"i","args":["a"],"aa":null,"zz":{"a":2,"b":1}}"#,
        ),
        // A tree that does not match the type is written nevertheless.
        (CONFIG_MAP, r#"[1,{"b":1,"a":2}]"#, r#"[1,{"a":2,"b":1}]"#),
        (CONFIG_MAP, r#"{"data":["x"],"metadata":1}"#, r#"{"metadata":1,"data":["x"]}"#),
    ] {
        assert_eq!(written(ty, json), expected, "{json}");
    }
}

#[test]
fn names_of_fields_are_plain() {
    for schema in [builtin(), crate::with_removed()] {
        for ty in schema.types() {
            let Shape::Struct { fields, .. } = &ty.shape else { continue };
            for field in fields.iter() {
                let quoted = json::to_string(&Value::from(&*field.name));
                assert_eq!(quoted, format!("\"{}\"", field.name), "{}", ty.name);
            }
        }
    }
}

#[test]
fn objects_with_many_members_are_written() {
    let members: Map = (0..100).map(|i| (format!("x{i:03}").into(), Value::Int(i))).collect();
    let mut value = Value::Object(members);
    value.make_object().insert("kind", "Pod");
    let json = json::to_string(&value);
    let expected = format!(
        r#"{{"kind":"Pod",{}"#,
        json.replacen(r#""kind":"Pod","#, "", 1).trim_start_matches('{')
    );
    assert_eq!(written(POD, &json), expected);
}

#[test]
fn the_gap_is_independent_of_the_tree() {
    const GAP: &str = r#""resourceVersion":"""#;
    for (json, expected) in [
        (
            r#"{"metadata":{"name":"n","resourceVersion":"7","uid":"u"}}"#,
            r#"{"metadata":{"name":"n","uid":"u","resourceVersion":""}}"#,
        ),
        (
            r#"{"metadata":{"creationTimestamp":null,"name":"n"},"kind":"Pod"}"#,
            r#"{"kind":"Pod","metadata":{"name":"n","resourceVersion":"","creationTimestamp":null}}"#,
        ),
        (
            r#"{"kind":"Pod","spec":{}}"#,
            r#"{"kind":"Pod","metadata":{"resourceVersion":""},"spec":{}}"#,
        ),
        (
            r#"{"metadata":1,"x":{"resourceVersion":"7"}}"#,
            r#"{"metadata":{"resourceVersion":""},"x":{"resourceVersion":"7"}}"#,
        ),
        ("null", r#"{"metadata":{"resourceVersion":""}}"#),
    ] {
        let mut out = b"before ".to_vec();
        let value = json::parse(json.as_bytes()).unwrap();
        let ty = builtin().find(POD).unwrap();
        let gap = write_object(builtin(), ty, &value, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, format!("before {expected}"), "{json}");
        assert_eq!(gap, out.find(GAP).unwrap() + GAP.len() - 1, "{json}");
    }
}

#[test]
fn metadata_alone_is_written_as_within_its_object() {
    let text = r#"{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"7","labels":{"b":"1","a":"2"},"name":"n"},"spec":{}}"#;
    let value = json::parse(text.as_bytes()).unwrap();
    let ty = builtin().find(POD).unwrap();
    let (mut whole, mut alone) = (Vec::new(), Vec::new());
    let gap = write_object(builtin(), ty, &value, &mut whole).unwrap();
    let metadata = value.get("metadata").unwrap();
    let gap_alone = write_metadata(builtin(), ty, metadata, &mut alone).unwrap();
    let range = json::member(&whole, "metadata").unwrap();
    assert_eq!(String::from_utf8_lossy(&alone), String::from_utf8_lossy(&whole[range.clone()]));
    assert_eq!(gap_alone, gap - range.start);
}

#[test]
fn a_type_without_a_resource_version_has_no_gap() {
    let ty = builtin().find(CONTAINER).unwrap();
    let mut out = Vec::new();
    assert_eq!(write_object(builtin(), ty, &Value::object(), &mut out), None);
    assert_eq!(out, b"");
}

#[test]
fn indented_json_has_two_spaces_a_level() {
    let value = json::parse(br#"{"metadata":{},"data":{"a":"b"},"x":[1,[]]}"#).unwrap();
    let mut out = Vec::new();
    write_pretty(builtin(), builtin().find(CONFIG_MAP).unwrap(), &value, &mut out);
    let expected = "{\n  \"metadata\": {},\n  \"data\": {\n    \"a\": \"b\"\n  },\n  \"x\": [\n    1,\n    []\n  ]\n}";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn fields_v1_is_written_unchanged() {
    const ENTRY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry";
    for (fields, compact, pretty) in [
        (
            r#"{"f:b":{},"f:a":{}}"#,
            r#"{"f:b":{},"f:a":{}}"#,
            "{\n    \"f:b\": {},\n    \"f:a\": {}\n  }",
        ),
        (
            r#"{ "v:\"<\"" : {} }"#,
            r#"{"v:\"\u003c\"":{}}"#,
            "{\n    \"v:\\\"\\u003c\\\"\": {}\n  }",
        ),
        (r#"{"v:\"a b\"":{}}"#, r#"{"v:\"a b\"":{}}"#, "{\n    \"v:\\\"a b\\\"\": {}\n  }"),
        (
            r#"{"f:a":{},"f:a":{}}"#,
            r#"{"f:a":{},"f:a":{}}"#,
            "{\n    \"f:a\": {},\n    \"f:a\": {}\n  }",
        ),
    ] {
        let (schema, ty) = (builtin(), builtin().find(ENTRY).unwrap());
        let body = format!(r#"{{"fieldsV1":{fields}}}"#);
        let decoded = crate::decode(schema, ty, body.as_bytes(), crate::Format::Json).unwrap();
        assert_eq!(decoded.problems, [], "{fields}");
        let mut out = Vec::new();
        write(schema, ty, &decoded.value, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!(r#"{{"fieldsV1":{compact}}}"#));
        let mut out = Vec::new();
        write_pretty(schema, ty, &decoded.value, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{{\n  \"fieldsV1\": {pretty}\n}}"));
    }
}
