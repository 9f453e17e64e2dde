use pintle_value::json;

use super::*;
use crate::built_in::BuiltInResource;

fn crd(plural: &str, kind: &str, short: &str) -> Value {
    let text = format!(
        r#"{{"metadata":{{"name":"{plural}.example.com"}},"spec":{{"group":"example.com","names":{{
            "plural":"{plural}","singular":"{singular}","kind":"{kind}","listKind":"{kind}List",
            "shortNames":["{short}"]}}}}}}"#,
        singular = kind.to_lowercase()
    );
    json::parse(text.as_bytes()).expect("JSON")
}

/// Reads the schema of a definition that has none.
fn no_schema(_: &str) -> Option<Value> {
    None
}

fn condition(status: &Value, condition_type: &str) -> String {
    let crd = Value::from([("status", status.clone())]);
    let found = Crd(&crd).condition(condition_type).expect("the condition");
    let text = |key| found.str_at(&[key]).unwrap_or_default();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}

#[test]
fn free_names_are_accepted() {
    let mut first = crd("tabs", "Tab", "t");
    let accepted_map =
        status((&first, &no_schema), &BuiltIn::default(), [].iter(), 0).expect("a change");
    assert_eq!(condition(&accepted_map, "NamesAccepted"), "True NoConflicts: no conflicts found");
    let established = "True InitialNamesAccepted: the initial names have been accepted";
    assert_eq!(condition(&accepted_map, "Established"), established);
    assert_eq!(accepted_map.str_at(&["acceptedNames", "plural"]), Some("tabs"));
    first.make_object().insert("status", accepted_map);
    assert_eq!(
        status((&first, &no_schema), &BuiltIn::default(), [].iter(), 99),
        None,
        "nothing is left to say"
    );
}

#[test]
fn names_in_use_conflict() {
    let mut first = crd("tabs", "Tab", "t");
    let accepted_map =
        status((&first, &no_schema), &BuiltIn::default(), [].iter(), 0).expect("a change");
    first.make_object().insert("status", accepted_map);
    for (second, expected) in [
        (crd("others", "Tab", "o"), r#"False KindConflict: "Tab" is already in use"#),
        (crd("others", "Other", "t"), r#"False ShortNamesConflict: "t" is already in use"#),
        (crd("others", "Other", "tabs"), r#"False ShortNamesConflict: "tabs" is already in use"#),
    ] {
        let status = status((&second, &no_schema), &BuiltIn::default(), [&first].into_iter(), 0)
            .expect("a change");
        let shown = condition(&status, "NamesAccepted");
        if expected.contains("Kind") {
            // The list's kind is in use, too, and is reported last.
            assert_eq!(shown, r#"False ListKindConflict: "TabList" is already in use"#);
        } else {
            assert_eq!(shown, expected);
        }
        let waiting = "False NotAccepted: not all names are accepted";
        assert_eq!(condition(&status, "Established"), waiting);
    }
}

/// `secrets` of `example.com`, with the kind `Secret` and the short name `sec`.
fn built_in() -> BuiltIn {
    BuiltIn::from_iter([BuiltInResource {
        group: "example.com",
        plural: "secrets",
        singular: "secret",
        short_names: &["sec"],
        kind: "Secret",
        list_kind: "SecretList",
        is_on: false,
    }])
}

/// A definition with a status that accepts all its names.
fn served(mut crd: Value) -> Value {
    let accepted_map =
        status((&crd, &no_schema), &BuiltIn::default(), [].iter(), 0).expect("a change");
    crd.make_object().insert("status", accepted_map);
    crd
}

#[test]
fn built_in_names_conflict() {
    for (plural, kind, short, expected) in [
        ("secrets", "Secret", "s", r#"False ListKindConflict: "SecretList" is already in use"#),
        ("secrets", "Other", "s", r#"False PluralConflict: "secrets" is already in use"#),
        ("sec", "Other", "s", r#"False PluralConflict: "sec" is already in use"#),
        ("others", "Secret", "s", r#"False ListKindConflict: "SecretList" is already in use"#),
        ("others", "Other", "sec", r#"False ShortNamesConflict: "sec" is already in use"#),
        ("others", "Other", "secret", r#"False ShortNamesConflict: "secret" is already in use"#),
    ] {
        // The names conflict whether they are requested or the status claims them.
        let requested = crd(plural, kind, short);
        for crd in [requested.clone(), served(requested)] {
            let status = status((&crd, &no_schema), &built_in(), [].iter(), 0).expect("a change");
            assert_eq!(condition(&status, "NamesAccepted"), expected, "{plural} {kind} {short}");
            let accepted_map = json::to_string(status.get("acceptedNames").expect("names"));
            for name in ["secrets", "Secret", "SecretList", "sec"] {
                assert!(!accepted_map.contains(&format!("{name:?}")), "{accepted_map}");
            }
        }
    }
}

#[test]
fn a_built_in_resource_prevents_establishment() {
    let claimed = served(crd("secrets", "Other", "o"));
    let accepted_map = status((&claimed, &no_schema), &built_in(), [].iter(), 0).expect("a change");
    assert_eq!(
        condition(&accepted_map, "Established"),
        "False NotAccepted: not all names are accepted"
    );
}

#[test]
fn protected_groups_need_approval() {
    for (group, expected) in
        [("k8s.io", true), ("a.k8s.io", true), ("kubernetes.io", true), ("xk8s.io", false)]
    {
        assert_eq!(is_protected(group), expected, "{group}");
    }
}
