use super::*;

/// The total size of compiled patterns is bounded, so that a hostile definition cannot exhaust
/// memory. Repeated patterns count once.
#[test]
fn the_total_size_of_patterns_is_limited() {
    let schema = |pattern: &dyn Fn(usize) -> String| {
        let property = |i| {
            (format!("p{i}"), Value::from([("type", "string".to_owned()), ("pattern", pattern(i))]))
        };
        let properties: pintle_value::Map =
            (0..80).map(property).map(|(name, schema)| (name.into(), schema)).collect();
        Value::from([("type", Value::from("object")), ("properties", properties.into())])
    };
    let errors_of = |schema: &Value, unchanged| {
        let errors = validate(schema, unchanged, &Path::new("s"));
        errors.iter().map(|error| error.detail.clone()).collect::<Vec<_>>()
    };
    let large = |i: usize| format!("[^a]{{900}}{i}");
    let different = schema(&large);
    assert_eq!(
        errors_of(&different, false),
        ["the patterns of the schema are too large, taken together"]
    );
    assert!(errors_of(&different, true).is_empty(), "unchanged schemas are accepted");
    assert!(errors_of(&schema(&|_| large(0)), false).is_empty());
}
