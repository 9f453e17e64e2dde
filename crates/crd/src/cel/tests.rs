use pintle_value::{Path, Value, json};

use super::*;
use crate::structural::Structural;

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn told(schema: &str, new: &str, old: Option<&str>) -> Vec<String> {
    let schema = Structural::read(&value(schema));
    let rules = Rules::of(&schema, true).expect("rules");
    let old = old.map(value);
    let errors = evaluate(&rules, &schema, &value(new), old.as_ref());
    errors.iter().map(ToString::to_string).collect()
}

fn of_spec(rule: &str) -> String {
    format!(
        r#"{{"type":"object","properties":{{"spec":{{"type":"object","properties":{{
            "a":{{"type":"integer"}},"b":{{"type":"integer"}},
            "list":{{"type":"array","maxItems":5,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
                "items":{{"type":"object","properties":{{"k":{{"type":"string","maxLength":9}},"v":{{"type":"integer"}}}},
                    "x-kubernetes-validations":[{{"rule":"self.v >= oldSelf.v"}}]}}}}}},
            "x-kubernetes-validations":[{rule}]}}}}}}"#
    )
}

#[test]
fn rules_are_judged_in_upstreams_words() {
    for (rule, new, old, expected) in [
        (r#"{"rule":"self.a <= self.b"}"#, r#"{"spec":{"a":1,"b":2}}"#, None, &[][..]),
        (
            r#"{"rule":"self.a <= self.b"}"#,
            r#"{"spec":{"a":3,"b":2}}"#,
            None,
            &["spec: Invalid value: failed rule: self.a <= self.b"],
        ),
        (
            r#"{"rule":"self.a <= self.b","message":"too much","fieldPath":".a","reason":"FieldValueForbidden"}"#,
            r#"{"spec":{"a":3,"b":2}}"#,
            None,
            &["spec.a: Forbidden: too much"],
        ),
        (
            r#"{"rule":"self.a <= self.b","messageExpression":"'at most ' + string(self.b)"}"#,
            r#"{"spec":{"a":3,"b":2}}"#,
            None,
            &["spec: Invalid value: at most 2"],
        ),
        (r#"{"rule":"self.a == oldSelf.a"}"#, r#"{"spec":{"a":3}}"#, None, &[]),
        (
            r#"{"rule":"self.a == oldSelf.a"}"#,
            r#"{"spec":{"a":3}}"#,
            Some(r#"{"spec":{"a":2}}"#),
            &["spec: Invalid value: failed rule: self.a == oldSelf.a"],
        ),
        (r#"{"rule":"self.a < 2"}"#, r#"{"spec":{"a":3}}"#, Some(r#"{"spec":{"a":3}}"#), &[]),
        (
            r#"{"rule":"oldSelf.hasValue() || self.a > 5","optionalOldSelf":true}"#,
            r#"{"spec":{"a":3}}"#,
            None,
            &["spec: Invalid value: failed rule: oldSelf.hasValue() || self.a > 5"],
        ),
        (
            r#"{"rule":"self.a < self.b"}"#,
            r#"{"spec":{"a":3}}"#,
            None,
            &[r#"spec: Invalid value: "object": no such key: b evaluating rule: self.a < self.b"#],
        ),
        (
            r#"{"rule":"true"}"#,
            r#"{"spec":{"list":[{"k":"x","v":1},{"k":"y","v":1}]}}"#,
            Some(r#"{"spec":{"list":[{"k":"y","v":2},{"k":"x","v":1}]}}"#),
            &["spec.list[1]: Invalid value: failed rule: self.v >= oldSelf.v"],
        ),
    ] {
        assert_eq!(told(&of_spec(rule), new, old), expected, "{rule} {new}");
    }
}

#[test]
fn rules_are_checked_when_a_definition_is_written() {
    let path = Path::new("s");
    for (schema, expected) in [
        (of_spec(r#"{"rule":"self.a < self.b"}"#), None),
        (of_spec(r#"{"rule":"self.none"}"#), Some("undefined field 'none'")),
        (of_spec(r#"{"rule":"self.a"}"#), Some("cel expression must evaluate to a bool")),
        (
            of_spec(r#"{"rule":"self.a > 1","optionalOldSelf":true}"#),
            Some("may not be set if oldSelf is not used in rule"),
        ),
        (
            r#"{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer",
                "x-kubernetes-validations":[{"rule":"self >= oldSelf"}]}}}}"#
                .to_owned(),
            Some(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[l]",
            ),
        ),
        (
            r#"{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"},
                "x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, x == y))"}]}}}"#
                .to_owned(),
            Some("exceeds budget by factor of more than 100x"),
        ),
    ] {
        let errors = validate(&value(&schema), None, &path);
        match expected {
            None => assert_eq!(errors, [], "{schema}"),
            Some(words) => {
                let found = errors.iter().any(|error| error.to_string().contains(words));
                assert!(found, "{schema}: {errors:?}");
            }
        }
    }
}

#[test]
fn paths_of_errors_are_members_of_the_schema() {
    let schema = Structural::read(&value(&of_spec(r#"{"rule":"true"}"#)));
    for (path, expected) in [
        (".spec.a", Some("spec.a")),
        (".spec['a']", Some("spec.a")),
        (".spec.none", None),
        ("spec", None),
        (".spec[0]", None),
    ] {
        assert_eq!(field_path(&schema, path).as_deref(), expected, "{path}");
    }
}
