use pintle_meta::field::Errors;
use pintle_value::{Path, Value, json};

use super::*;
use crate::structural::Structural;

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The errors of the rules of a schema.
fn checked(schema: &Value) -> Errors {
    validate(&Structural::read(schema), false, &[], &Path::new("s"), &mut allowance())
}

/// The errors and the warnings.
fn input(schema: &str, new: &str, old: Option<&str>) -> [Vec<String>; 2] {
    let schema = Structural::read(&value(schema));
    let rules = Rules::of(&schema, true).expect("rules");
    let old = old.map(value);
    let verdict = evaluate(&rules, &schema, &value(new), old.as_ref());
    [verdict.errors, verdict.warnings].map(|list| list.iter().map(ToString::to_string).collect())
}

fn errors(schema: &str, new: &str, old: Option<&str>) -> Vec<String> {
    let [errors, _] = input(schema, new, old);
    errors
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
fn rule_errors_match_upstream() {
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
        assert_eq!(errors(&of_spec(rule), new, old), expected, "{rule} {new}");
    }
}

/// Upstream's TestMessageExpression.
#[test]
fn message_expressions_match_upstream() {
    let long = format!("'{}'", "a".repeat(5121));
    for (expression, message, expected) in [
        ("'static text'", "", "static text"),
        ("'this is said'", "not this", "this is said"),
        ("'a is ' + string(self.a)", "", "a is 3"),
        ("'b is ' + string(self.b)", "instead", "instead"),
        ("'b is ' + string(self.b)", "", "failed rule: false"),
        ("'with \\\\na line'", "instead", "instead"),
        ("'with \\\\ra return'", "instead", "with \ra return"),
        (&long, "instead", "instead"),
        ("string('')", "instead", "instead"),
        ("string('    ')", "instead", "instead"),
        ("'  trimmed '", "", "trimmed"),
        ("string(oldSelf.a)", "instead", "instead"),
    ] {
        let rule = format!(
            r#"{{"rule":"false","messageExpression":"{expression}","message":"{message}"}}"#
        );
        let found = errors(&of_spec(&rule), r#"{"spec":{"a":3}}"#, None);
        assert_eq!(found, [format!("spec: Invalid value: {expected}")], "{expression}");
    }
}

/// If `oldSelf` is optional, upstream compiles the message expression with an optional value, like
/// the rule, but passes a plain value.
#[test]
fn messages_get_the_plain_old_value() {
    for (expression, old, expected) in [
        ("'was ' + string(oldSelf.?a.orValue(0))", Some(r#"{"spec":{"a":2}}"#), "was 2"),
        ("'was ' + string(oldSelf.?a.orValue(0))", None, "instead"),
        ("oldSelf.hasValue() ? 'was' : 'was not'", Some(r#"{"spec":{"a":2}}"#), "instead"),
        ("oldSelf.hasValue() ? 'was' : 'was not'", None, "instead"),
        ("'is ' + string(self.a)", None, "is 3"),
    ] {
        let rule = format!(
            r#"{{"rule":"oldSelf.hasValue() && false","optionalOldSelf":true,
                "messageExpression":"{expression}","message":"instead"}}"#
        );
        let found = errors(&of_spec(&rule), r#"{"spec":{"a":3}}"#, old);
        assert_eq!(found, [format!("spec: Invalid value: {expected}")], "{expression} {old:?}");
    }
}

#[test]
fn expensive_messages_end_the_evaluation() {
    let costly = "self.list.map(x, self.list.map(y, self.list.map(z, x.v + y.v + z.v)))";
    let items: Vec<String> = (0..99).map(|i| format!(r#"{{"k":"{i}","v":1}}"#)).collect();
    let new = format!(r#"{{"spec":{{"list":[{}]}}}}"#, items.join(","));
    let rule = format!(r#"{{"rule":"false","messageExpression":"string(size({costly}))"}}"#);
    let ended = "no further validation rules will be run";
    let expected = format!(
        r#"spec: Invalid value: "object": {ended} due to call cost exceeds limit for messageExpression: "string(size({costly}))""#
    );
    assert_eq!(errors(&of_spec(&rule), &new, None), [expected]);
    // Many rules use up the budget, so that none of it is left for a message.
    let cheaper = "self.list.map(x, self.list.map(y, x.v + y.v)).size() < 0";
    let mut rules = vec![format!(r#"{{"rule":"{cheaper}"}}"#); 80];
    rules.push(r#"{"rule":"false","messageExpression":"'said'"}"#.to_owned());
    let found = errors(&of_spec(&rules.join(",")), &new, None);
    let last = found.last().expect("rules failed");
    assert!(last.ends_with(&format!("running out of cost budget, {ended}")), "{last}");
}

#[test]
fn unchanged_parts_are_ratcheted() {
    let schema = |list: &str, more: &str| {
        format!(
            r#"{{"type":"object","properties":{{"n":{{"type":"integer"}},"l":{{"type":"array",{list}
                "items":{{"type":"object"{more},"properties":{{"k":{{"type":"string"}},"v":{{"type":"integer"}}}},
                    "x-kubernetes-validations":[{{"rule":"self.v < 2"}}]}}}}}}}}"#
        )
    };
    let keyed = r#""x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"#;
    let unknown = r#","x-kubernetes-preserve-unknown-fields":true"#;
    let wrong = |i: usize| format!("l[{i}]: Invalid value: failed rule: self.v < 2");
    let old = r#"{"n":1,"l":[{"k":"a","v":5},{"k":"b","v":1}]}"#;
    for (schema, new, old, expected, warnings) in [
        // A list whose items cannot be identified is compared as a whole.
        (
            schema("", ""),
            r#"{"n":2,"l":[{"k":"a","v":5},{"k":"b","v":1}]}"#,
            old,
            vec![],
            vec![wrong(0)],
        ),
        (
            schema("", ""),
            r#"{"n":2,"l":[{"k":"a","v":5},{"k":"b","v":0}]}"#,
            old,
            vec![wrong(0)],
            vec![],
        ),
        // Items with keys are identified.
        (
            schema(keyed, ""),
            r#"{"l":[{"k":"b","v":0},{"k":"a","v":5}]}"#,
            old,
            vec![],
            vec![wrong(1)],
        ),
        (
            schema(keyed, ""),
            r#"{"l":[{"k":"c","v":5},{"k":"a","v":6}]}"#,
            old,
            vec![wrong(0), wrong(1)],
            vec![],
        ),
        // An item with an undeclared field counts as changed.
        (
            schema(keyed, unknown),
            r#"{"l":[{"k":"a","v":5,"x":1}]}"#,
            r#"{"l":[{"k":"a","v":5,"x":1}]}"#,
            vec![wrong(0)],
            vec![],
        ),
    ] {
        assert_eq!(input(&schema, new, Some(old)), [expected, warnings], "{schema} {new}");
    }
}

#[test]
fn messages_are_checked_with_their_rules() {
    let rule =
        |given: &str| of_spec(&format!(r#"{{"rule":"true","messageExpression":"{given}"}}"#));
    for (given, expected) in [
        ("'a is wrong'", None),
        ("self.a", Some("messageExpression must evaluate to a string")),
        (
            "'a' + self.a",
            Some(
                "messageExpression compilation failed: ERROR: <input>:1:5: found no matching \
                 overload for '_+_' applied to '(string, int)'",
            ),
        ),
        (
            "string(int('a'))",
            Some(
                "messageExpression instantiation failed: type conversion error from 'string' to 'int'",
            ),
        ),
    ] {
        let errors = checked(&value(&rule(given)));
        match expected {
            None => assert_eq!(errors, Errors::new(), "{given}"),
            Some(words) => {
                let found = errors.iter().any(|error| error.to_string().contains(words));
                assert!(found && errors.len() == 1, "{given}: {errors:?}");
            }
        }
    }
    let rule = r#"{"rule":"int('a') == 1"}"#;
    let errors = checked(&value(&of_spec(rule)));
    let words = "program instantiation failed: type conversion error from 'string' to 'int'";
    assert!(errors.len() == 1 && errors[0].to_string().ends_with(words), "{errors:?}");
}

/// Upstream's TestValidateCustomResourceDefinitionValidation, the cases about estimated costs.
#[test]
fn estimated_costs_are_limited_per_rule_and_in_total() {
    let list = |bounds: (&str, &str), rule: &str| {
        format!(
            r#"{{"type":"object","properties":{{"f":{{"type":"array"{},"items":{{"type":"string"{}}},
                "x-kubernetes-validations":[{rule}]}}}}}}"#,
            bounds.0, bounds.1
        )
    };
    let given = |message: &str| format!(r#"{{"rule":"true","messageExpression":"{message}"}}"#);
    let ruled = |rule: &str| format!(r#"{{"rule":"{rule}"}}"#);
    let open = ("", "");
    let bounded = (r#","maxItems":5"#, r#","maxLength":5"#);
    let eight = (0..8).map(|i| format!("self[{i}]")).collect::<Vec<_>>().join(" + ");
    let message = "s.properties[f].x-kubernetes-validations[0].messageExpression";
    let named = |properties: &str| {
        format!(
            r#"{{"type":"object"{properties},"x-kubernetes-validations":[
                {{"rule":"self.metadata.name.contains(self.metadata.generateName)"}}]}}"#
        )
    };
    let same_case = "self.all(x, self.exists_one(y, x.lowerAscii() == y.lowerAscii()))";
    for (schema, expected) in [
        (list(open, &given(&eight)), &[message][..]),
        // The size of a conversion's text is unknown, so the total is exceeded, too.
        (
            list(open, &given("string(self[0]) + string(self[1]) + string(self[2])")),
            &[message, message, "s"],
        ),
        (list(bounded, &ruled(same_case)), &[]),
        (
            named(""),
            &["s.x-kubernetes-validations[0].rule", "s.x-kubernetes-validations[0].rule", "s"],
        ),
        // If a schema declares all members that every object has, its declarations hold instead of
        // the usual ones.
        (
            named(
                r#","properties":{"kind":{"type":"string"},"apiVersion":{"type":"string"},
                "metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":63},
                    "generateName":{"type":"string","maxLength":63}}}}"#,
            ),
            &[],
        ),
    ] {
        let errors = checked(&value(&schema));
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, expected, "{schema}: {errors:?}");
    }
    // An update that does not change the schema is not subject to the limit of one rule.
    let schema = value(&list(open, &given(&eight)));
    assert_eq!(
        validate(&Structural::read(&schema), true, &[], &Path::new("s"), &mut allowance()),
        Errors::new()
    );
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
        let errors =
            validate(&Structural::read(&value(&schema)), false, &[], &path, &mut allowance());
        match expected {
            None => assert_eq!(errors, Errors::new(), "{schema}"),
            Some(words) => {
                let found = errors.iter().any(|error| error.to_string().contains(words));
                assert!(found, "{schema}: {errors:?}");
            }
        }
    }
}

#[test]
fn field_paths_must_exist_in_the_schema() {
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

/// The items of a list without keys are ratcheted with the whole list, which is compared once.
#[test]
fn items_of_a_changed_list_share_one_comparison() {
    let begin = std::time::Instant::now();
    let schema = value(
        r#"{"type":"object","properties":{"list":{"type":"array","items":{"type":"string",
            "x-kubernetes-validations":[{"rule":"self != 'b'"}]}}}}"#,
    );
    let schema = Structural::read(&schema);
    let rules = Rules::of(&schema, true).expect("rules");
    let list = |second: &str| {
        let half = 100_000;
        let items: Vec<Value> =
            (0..2 * half).map(|i| if i < half { "a" } else { second }.into()).collect();
        Value::from([("list", items)])
    };
    for (old, new, errors, warnings) in [("a", "b", 1001, 0), ("b", "b", 0, 1001)] {
        let verdict = evaluate(&rules, &schema, &list(new), Some(&list(old)));
        assert_eq!([verdict.errors.len(), verdict.warnings.len()], [errors, warnings]);
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(60));
}

/// A definition of 200 versions with 100 rules each has 20,000 rules.
#[test]
fn the_rules_of_a_definition_share_a_limit() {
    let begin = std::time::Instant::now();
    let schema = |count: usize, rule: &dyn Fn(usize) -> String| {
        let rules = (0..count).map(|n| Value::from([("rule", rule(n))]));
        let rules: Vec<Value> = rules.collect();
        let [ty, rules] = [Value::from("string"), Value::from(rules)];
        let members = [("type", ty), ("maxLength", 9.into()), ("x-kubernetes-validations", rules)];
        Structural::read(&Value::from(members))
    };
    let usual = |n: usize| format!("self.size() < {n} || self.matches('^[a-z0-9]{{{n},}}$')");
    let copies = |n: usize| {
        let steps = ".optMap(x,x)".repeat(13);
        format!("{n} == 0 || optional.of(true){steps}.orValue(true)")
    };
    let over = "s.x-kubernetes-validations[N].rule: Forbidden: the expressions of the object are too \
                large together";
    for (rules, count, last) in [
        (schema(500, &usual), 0, ""),
        (schema(500, &copies), 1, over),
        (schema(500, &|n| format!(r"self.matches('\\pL{{15}}{n}')")), 1, over),
        (schema(2000, &|_| "no".to_owned()), 1001, "undeclared reference to 'no'"),
    ] {
        let errors = validate(&rules, false, &[], &Path::new("s"), &mut allowance());
        let text = errors.last().map(ToString::to_string).unwrap_or_default();
        let text = match text.split_once('[').zip(text.split_once(']')) {
            Some(((head, _), (_, tail))) if count == 1 => format!("{head}[N]{tail}"),
            _ => text,
        };
        assert_eq!(errors.len(), count, "{text}");
        assert!(text.contains(last), "{text}");
    }
    // Rules that are beyond the limit are errors when they are first used.
    let rules = Rules::of(&schema(500, &copies), true).expect("rules");
    let compiled = rules.own.iter().filter(|rule| rule.program.is_ok()).count();
    assert!((1..100).contains(&compiled), "{compiled}");
    assert!(begin.elapsed() < std::time::Duration::from_secs(240), "{:?}", begin.elapsed());
}
