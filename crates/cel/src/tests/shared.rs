//! Values and types can share parts, so a short expression can have a value or a type that is far
//! larger than its memory. Every walk must be limited.

use std::time::{Duration, Instant};

use pintle_value::Value;

use super::hostile::{CANCELLED, evaluate};
use crate::{
    Bindings, Budget, COST_MAX, Composed, Composition, Declaration, Environment, SIZE_MAX,
};

/// The time in which each row ends, also on a busy machine without optimization. Without a limit,
/// they take at least hours.
const SOON: Duration = Duration::from_secs(60);

/// Evaluates named expressions with one budget, and returns the outcome of the last one as text.
fn evaluate_composed(expressions: &[String]) -> String {
    let mut composition = Composition::default();
    let mut last = None;
    let environment = |composition: &Composition, expression: &str| {
        let declared = composition.declaration("Variables", expression);
        Environment::new().with("variables", declared)
    };
    for (at, expression) in expressions.iter().enumerate() {
        let program = environment(&composition, expression).compile(expression);
        if at + 1 == expressions.len() {
            match program {
                Ok(program) => last = Some(program),
                Err(error) => return error.to_string(),
            }
            break;
        }
        composition.add(format!("v{at}"), program.map_err(|error| error.to_string()));
    }
    let last = last.expect("there is a last expression");
    let composed = Composed::new(&composition);
    let mut budget = Budget::new(10 * COST_MAX);
    match last.evaluate_composed(&Bindings::new(), &composed, &mut budget) {
        Ok(_) => "a value".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn large_types_are_refused() {
    let begin = Instant::now();
    let too_large = "type size exceeds limit: 1000";
    for (first, step, count, expected) in [
        // Evaluations reject such keys; the type of the map is accepted.
        ("[0]", ".map(x, {x: x})", 5, "unsupported key type"),
        ("[0]", ".map(x, {x: x})", 26, too_large),
        ("[]", ".map(x, {x: x})", 26, too_large),
        ("[dyn(0)]", ".map(x, {x: x})", 26, too_large),
        ("[0]", ".map(x, {x: x}).filter(y, y == y)", 26, too_large),
        ("[0]", ".map(x, {x: x}).map(x, [x, x]).map(x, x + x)", 26, too_large),
        ("[0]", ".map(x, {x: [x]}).filter(y, [y, 1] == [y])", 26, too_large),
        ("[0]", ".map(x, {optional.of(x): x})", 26, too_large),
    ] {
        let outcome = evaluate(&format!("{first}{}", step.repeat(count)), &Value::Null);
        assert!(outcome.contains(expected), "{first}{step} {count}: {outcome}");
    }
    let mut steps = vec!["[0]".to_owned()];
    steps.extend((0..30).map(|i| format!("variables.v{i}.map(x, {{x: x}})")));
    let outcome = evaluate_composed(&steps);
    assert!(outcome.contains("fails to compile") || outcome.contains(too_large), "{outcome}");
    assert!(begin.elapsed() < SOON);
}

#[test]
fn walks_over_shared_values_end() {
    let begin = Instant::now();
    let lists = |end: &str| format!("[1]{}{end}", ".map(x, [x, x])".repeat(40));
    let texts = |end: &str| format!("['']{}{end}", ".map(x, [x, x])".repeat(40));
    let maps = |end: &str| format!("[1]{}{end}", ".map(x, {1: x, 2: x})".repeat(40));
    for expression in [
        lists(".indexOf(dyn(1)) == -1"),
        lists(".lastIndexOf(dyn(1)) == -1"),
        texts(".indexOf(dyn(1)) == -1"),
        maps(".indexOf(dyn(1)) == -1"),
        format!("dyn({}) == dyn({})", lists(""), lists("")),
        format!("dyn({}) in [dyn({})]", lists(""), lists("")),
        format!("'%s'.format([{}])", lists("")),
        format!("'%s'.format([{}])", maps("")),
        lists(""),
        maps(""),
        lists(".flatten(41)"),
        lists(".distinct().map(x, [x, x]).distinct() == []"),
    ] {
        let outcome = evaluate(&expression, &Value::Null);
        let is_bounded = outcome == CANCELLED || outcome == "a value";
        assert!(is_bounded, "{expression}: {outcome}");
    }
    assert!(begin.elapsed() < SOON);
}

#[test]
fn values_that_use_shared_values_end() {
    let begin = Instant::now();
    let cancelled = format!("fails to evaluate: {CANCELLED}");
    let doubled = format!("[1]{}", ".map(x, [x, x])".repeat(40));
    let [last, none] = ["variables.v1 == []".to_owned(), "a value".to_owned()];
    for (expressions, expected) in [
        (vec![doubled, "variables.v0".to_owned(), last.clone()], &cancelled),
        (vec!["[1]".to_owned(), "variables.v0 + [2]".to_owned(), last], &none),
    ] {
        let outcome = evaluate_composed(&expressions);
        assert!(outcome.ends_with(expected), "{expressions:?}: {outcome}");
    }
    assert!(begin.elapsed() < SOON);
}

/// Each expression has a bounded depth, but a list can be a concatenation of another one.
#[test]
fn concatenations_of_values_are_bounded() {
    let mut expressions = vec!["[0]".to_owned()];
    expressions.extend((0..600).map(|i| format!("variables.v{i}{}", " + [1]".repeat(200))));
    expressions.push("variables.v600[0] == 0".to_owned());
    let outcome = evaluate_composed(&expressions);
    assert!(outcome.ends_with("values are nested too deeply"), "{outcome}");
}

/// Whether so many evaluations of a rule for one object are cancelled.
fn is_cancelled(rule: &str, item: impl Fn(usize) -> Value, count: usize) -> bool {
    let any = Declaration::Dyn { size_max: SIZE_MAX };
    let program = Environment::new().with("self", any).compile(rule).expect("compiles");
    let mut budget = Budget::new(10 * COST_MAX);
    (0..count).any(|i| {
        let item = item(i);
        let result = program.evaluate(&Bindings::new().with(&item), &mut budget);
        result.is_err_and(|error| error.is_cancelled())
    })
}

#[test]
fn evaluations_for_one_object_share_the_work() {
    let begin = Instant::now();
    let large = |letter: char| Value::from(format!("\\pL{{300}}{letter}"));
    let wrong = |letter: char| Value::from(format!("\\pL{{300}}{letter}("));
    let small = |i: usize| Value::from(format!("a{i}"));
    let letter = |i: usize| char::from(b'a' + (i % 26) as u8);
    let rule = "'x'.matches(self) || true";
    for (rule, item, expected) in [
        // Each pattern is compiled once.
        (rule, &(|_| large('a')) as &dyn Fn(usize) -> Value, false),
        (rule, &|_| wrong('a'), false),
        (rule, &|i| large(letter(i % 3)), false),
        // Many small patterns are usual.
        (rule, &small, false),
        // Too many patterns to keep them.
        (rule, &|i| large(letter(i)), true),
        ("lists.range(900000).size() > 0", &|_| Value::Null, true),
    ] {
        assert_eq!(is_cancelled(rule, item, 3_000), expected, "{rule} {:?}", item(0));
    }
    assert!(begin.elapsed() < SOON);
}

/// A list with keys, in which each item has a large member that is not one of them.
#[test]
fn keys_are_read_without_the_items() {
    let begin = Instant::now();
    let schema = br#"{"type":"object","properties":{
        "r":{"type":"array","items":{"type":"integer"}},
        "l":{"type":"array","items":{"type":"array",
            "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
            "items":{"type":"object","properties":{"k":{"type":"string"},
                "v":{"type":"array","items":{"type":"integer"}}}}}}
        }}"#;
    let schema = pintle_value::json::parse(schema).expect("JSON");
    let (declaration, _) = super::schema::declare(&schema, "self").expect("a declaration");
    let environment = Environment::new().with("self", declaration);
    let item = |key: &str| {
        let large = Value::from(vec![Value::Int(1); 100_000]);
        Value::from([("k", Value::from(key)), ("v", large.clone()), ("undeclared", large)])
    };
    let list = |key: &str| Value::from(vec![item(key)]);
    let numbers: Vec<Value> = (0..50_000).map(Value::Int).collect();
    let lists = Value::from(vec![list("a"), list("b")]);
    let value = Value::from([("r", numbers.into()), ("l", lists)]);
    for (rule, expected) in [
        ("self.r.all(i, self.l[0] != self.l[1])", "true"),
        ("self.r.all(i, self.l[0] == self.l[0])", CANCELLED),
    ] {
        let program = environment.compile(rule).expect("compiles");
        let mut budget = Budget::new(10 * COST_MAX);
        let result = program.evaluate(&Bindings::new().with(&value), &mut budget);
        let outcome = result
            .map_or_else(|error| error.to_string(), |value| pintle_value::json::to_string(&value));
        assert_eq!(outcome, expected, "{rule}");
    }
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn patches_of_shared_values_end() {
    let begin = Instant::now();
    for (first, expected) in [("1", CANCELLED), ("Object.spec.a{}", CANCELLED)] {
        let shared = format!("[{first}]{}", ".map(x, [x, x])".repeat(40));
        let expression = format!("Object{{spec: Object.spec{{a: {shared}}}}}");
        let program = Environment::new().with_patches().compile(&expression).expect("compiles");
        let mut budget = Budget::new(10 * COST_MAX);
        let result = program.evaluate(&Bindings::new(), &mut budget);
        let outcome = result.map_or_else(|error| error.to_string(), |_| "a value".to_owned());
        assert_eq!(outcome, expected, "{expression}");
    }
    assert!(begin.elapsed() < SOON);
}
