use super::*;

#[test]
fn paths_find_values() {
    let object = pintle_value::json::parse(
        br#"{"spec":{"n":3,"list":[{"t":"A","v":1},{"t":"B","v":2},{"t":"C","v":3}],
            "labels":{"a.b/c":"x"},"deep":{"v":9}}}"#,
    )
    .expect("JSON");
    for (path, expected) in [
        (".spec.n", "[3]"),
        ("$.spec.n", "[3]"),
        (".spec.none", "[]"),
        (".spec.list[0].t", r#"["A"]"#),
        (".spec.list[-1].t", r#"["C"]"#),
        (".spec.list[9].t", "[]"),
        (".spec.list[0:2].v", "[1,2]"),
        (".spec.list[::2].v", "[1,3]"),
        (".spec.list[*].v", "[1,2,3]"),
        (".spec.list[0,2].v", "[1,3]"),
        (r#".spec.list[?(@.t=="B")].v"#, "[2]"),
        (".spec.list[?(@.t=='B')].v", "[2]"),
        (".spec.list[?(@.v>1)].t", r#"["B","C"]"#),
        (".spec.list[?(@.v!=1)].t", r#"["B","C"]"#),
        (".spec.list[?(@.none)].t", "[]"),
        (r".spec.labels.a\.b/c", r#"["x"]"#),
        (".spec.labels['a.b/c']", r#"["x"]"#),
        ("..v", "[9,1,2,3]"),
        (".", ""),
    ] {
        let found = JsonPath::parse(path).unwrap_or_else(|| panic!("{path}"));
        let found =
            Value::Array(found.find(&object, &mut { VISITS_MAX }).into_iter().cloned().collect());
        if !expected.is_empty() {
            assert_eq!(pintle_value::json::to_string(&found), expected, "{path}");
        }
    }
    for wrong in [".spec[", ".spec[?(@.a]", ".a b", ".spec[x]", ".spec[1:2:0]"] {
        assert_eq!(JsonPath::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn only_simple_paths_have_members() {
    let members = |path| JsonPath::parse(path).and_then(|path| path.members());
    assert_eq!(members(".a.b"), Some(vec!["a".into(), "b".into()]));
    assert_eq!(members(".a[0]"), None);
}

/// Each filter finds its path again for each item, so nested ones multiply.
#[test]
fn filters_visit_a_bounded_number_of_values() {
    let begin = std::time::Instant::now();
    let nested = |depth: usize| {
        let mut value = Value::from(vec![Value::Int(1)]);
        for _ in 1..depth {
            let ones = std::iter::repeat_n(Value::Int(1), 20);
            value = Value::from([value].into_iter().chain(ones).collect::<Vec<_>>());
        }
        Value::from([("a", value)])
    };
    let large = Value::from([("a", Value::from(vec![Value::from("x".repeat(100_000)); 500]))]);
    for (path, object, expected) in [
        (".a[?(@..[?(@..[?(@..x)])])]", nested(500), 0),
        (".a[?(@..[?(@..[?(@..x)])])]", nested(3), 0),
        (".a..[?(@ == 1)]", nested(3), 41),
        (".a..[?(@ == @)]", nested(500), 0),
        (".a[?(@ == @)]", large, 0),
    ] {
        let parsed = JsonPath::parse(path).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(parsed.find(&object, &mut { VISITS_MAX }).len(), expected, "{path}");
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(10));
}
