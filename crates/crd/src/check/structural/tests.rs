use super::*;

/// A hostile definition may not have more patterns than there is memory for; the same few, however
/// often they are said, are no matter.
#[test]
fn patterns_are_limited_taken_together() {
    let schema = |pattern: &dyn Fn(usize) -> String| {
        let property = |i| {
            (format!("p{i}"), Value::from([("type", "string".to_owned()), ("pattern", pattern(i))]))
        };
        let properties: pintle_value::Map =
            (0..80).map(property).map(|(name, schema)| (name.into(), schema)).collect();
        Value::from([("type", Value::from("object")), ("properties", properties.into())])
    };
    let told = |schema: &Value, unchanged| {
        let errors = validate(schema, unchanged, &Path::new("s"));
        errors.iter().map(|error| error.detail.clone()).collect::<Vec<_>>()
    };
    let large = |i: usize| format!("[^a]{{900}}{i}");
    let different = schema(&large);
    assert_eq!(
        told(&different, false),
        ["the patterns of the schema are too large, taken together"]
    );
    assert!(told(&different, true).is_empty(), "what is there already is borne");
    assert!(told(&schema(&|_| large(0)), false).is_empty());
}
