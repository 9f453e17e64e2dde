use std::time::{Duration, Instant};

use super::super::claims;
use super::*;
use pintle_value::Value;

/// The spec of a claim whose requests have this many selectors, with the expressions that
/// `expression` returns.
fn spec(selectors: usize, expression: impl Fn(usize) -> String) -> Value {
    let selector = |n: usize| {
        Value::from([("cel", Value::from([("expression", Value::from(expression(n)))]))])
    };
    let numbers: Vec<usize> = (0..selectors).collect();
    let request = |(i, numbers): (usize, &[usize])| {
        let selectors: Vec<Value> = numbers.iter().map(|n| selector(*n)).collect();
        let exactly = Value::from([
            ("deviceClassName", Value::from("class")),
            ("allocationMode", Value::from("All")),
            ("selectors", Value::from(selectors)),
        ]);
        Value::from([("name", Value::from(format!("r{i}"))), ("exactly", exactly)])
    };
    let requests = numbers.chunks(SELECTORS_MAX).enumerate().map(request);
    let devices = Value::from([("requests", Value::from(requests.collect::<Vec<_>>()))]);
    Value::from([("devices", devices)])
}

/// Each expression has less than 1 KB, and takes up to a second.
#[test]
fn the_expressions_of_a_claim_share_a_limit() {
    let begin = Instant::now();
    let patterns = |n: usize| {
        let terms = (0..14).map(|i| format!(r"''.matches('\\pL{{{}}}')", 20 + 14 * (n % 50) + i));
        terms.collect::<Vec<_>>().join("||")
    };
    let copies = |n: usize| {
        let steps = ".optMap(x,x)".repeat(13);
        format!("{n} == 0 || optional.of(true){steps}.orValue(true)")
    };
    let over = "Forbidden: the expressions of the object are too large together";
    for (name, selectors, expression, count, last) in [
        (
            "simple",
            1024,
            &(|n| format!("device.driver == 'd{n}'")) as &dyn Fn(usize) -> String,
            0,
            "",
        ),
        ("equal", 1024, &|_| copies(1), 0, ""),
        ("equal and wrong", 1024, &|_| "no".to_owned(), 1001, "undeclared reference"),
        ("copies", 1024, &copies, 1, over),
        ("patterns", 1024, &patterns, 1, over),
    ] {
        let spec = spec(selectors, expression);
        let errors = claims::validate(&Field::root(&spec));
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), count, "{name}: {texts:?}");
        assert!(texts.last().map_or("", String::as_str).contains(last), "{name}: {texts:?}");
        if count > 32 {
            let path = "devices.requests[1].exactly.selectors[0].cel.expression";
            assert_eq!(errors[32].field, path);
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", begin.elapsed());
}
