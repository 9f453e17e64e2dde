//! No input panics, and no evaluation exceeds its budget.

use pintle_value::Value;
use proptest::prelude::*;

use crate::context::Context;
use crate::{Bindings, Budget, COST_MAX, Declaration, Environment, SIZE_MAX};

fn environment() -> Environment {
    let any = Declaration::Dyn { size_max: SIZE_MAX };
    Environment::new().with("self", any.clone()).with("oldSelf", any)
}

/// Evaluates with the maximum budget, and returns the outcome as text.
pub(super) fn evaluate(expression: &str, value: &Value) -> String {
    let program = match environment().compile(expression) {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    let bindings = Bindings::new().with(value).with(value);
    let mut budget = Budget::new(10 * COST_MAX);
    match program.evaluate(&bindings, &mut budget) {
        Ok(_) => "a value".to_owned(),
        Err(error) => error.to_string(),
    }
}

pub(super) const CANCELLED: &str = "operation cancelled: actual cost limit exceeded";

#[test]
fn expensive_evaluations_are_cancelled() {
    let grown = |end: &str| {
        let steps = ".optMap(x, x + x + x + x + x + x + x + x)".repeat(8);
        format!("optional.of([1, 2]){steps}.optMap(x, {end}).hasValue()")
    };
    let rows = [
        "lists.range(1000000000000)".to_owned(),
        "lists.range(9223372036854775807)".to_owned(),
        grown("x.sum()"),
        grown("x == x"),
        grown("3 in x"),
        grown("x.sort()"),
        grown("x.distinct()"),
        grown("x.reverse()"),
        grown("[x].flatten()"),
    ];
    for expression in rows {
        assert_eq!(evaluate(&expression, &Value::Null), CANCELLED, "{expression}");
    }
}

/// NaN has no order, but the numbers around it have one.
#[test]
fn numbers_with_nan_are_sorted() {
    let numbers = "lists.range(200).map(n, n * 7919 % 200)";
    let numbers = format!("{numbers}.map(n, n % 3 == 0 ? 0.0 / 0.0 : double(n))");
    for sort in ["sort()", "sortBy(x, x)"] {
        let sorted = format!("{numbers}.{sort}.filter(x, x == x)");
        for check in ["isSorted()", "size() == 133"] {
            let rule = format!("{sorted}.{check} || {{}}.missing");
            assert_eq!(evaluate(&rule, &Value::Null), "a value", "{rule}");
        }
    }
}

/// In upstream's cost model, the cost of these rules is independent of a text's length.
#[test]
fn repeated_reads_of_long_texts_are_bounded() {
    let numbers: Vec<Value> = (0..50_000).map(Value::Int).collect();
    let long = |letter: &str| Value::from(letter.repeat(1_000_000));
    let data = [("n", numbers.into()), ("t", long("é")), ("u", long("é")), ("d", long("0"))];
    let mut value = Value::from(data);
    let members = value.make_object();
    members.insert("path", format!("https://a/{}", "é".repeat(500_000)));
    members.insert("version", format!("1.0.0-{}", "a.".repeat(500_000) + "a"));
    let with = |made: &str, rule: &str| format!("[{made}].all(x, self.n.all(a, {rule}))");
    for rule in [
        with("url(self.path)", "x == x"),
        with("url(self.path)", "x.getHost() == 'a'"),
        with("url(self.path)", "x.getEscapedPath() != ''"),
        with("url(self.path)", "x.getQuery().size() == 0"),
        with("semver(self.version)", "x == x"),
        with("semver(self.version)", "x.compareTo(x) == 0"),
    ] {
        assert_eq!(evaluate(&rule, &value), CANCELLED, "{rule}");
    }
    for rule in [
        "self.n.all(a, self.t.size() > 0)",
        "self.n.all(a, [self.t] == [self.u])",
        "self.n.all(a, self.t in {self.u: 1})",
        "self.n.all(a, int(self.d) == 0)",
        "self.n.all(a, {'a': 1}[self.t] == 1 || true)",
        "self.n.map(a, lists.range(900000)).size() > 0",
    ] {
        assert_eq!(evaluate(rule, &value), CANCELLED, "{rule}");
    }
    // Tests that only read a few characters succeed.
    let rule = "self.n.all(a, self.t != 'a')";
    assert_eq!(evaluate(rule, &value), "a value");
}

#[test]
fn evaluations_share_a_budget() {
    let program = environment().compile("[1, 2, 3].all(x, x > 0)").expect("compiles");
    let mut budget = Budget::new(40);
    let value = program.evaluate(&Bindings::new(), &mut budget).expect("evaluates");
    assert_eq!((value, budget.left()), (Value::Bool(true), 24));
    program.evaluate(&Bindings::new(), &mut budget).expect("there is enough for once more");
    let error = program.evaluate(&Bindings::new(), &mut budget).expect_err("the budget is spent");
    assert!(error.is_cancelled());
    assert_eq!(budget.left(), 0);
}

#[test]
fn expression_depth_is_bounded() {
    let nested = |open: &str, close: &str| format!("{}1{}", open.repeat(300), close.repeat(300));
    let deep = "expression recursion limit exceeded: 250";
    for (open, close) in [("(", ")"), ("[", "]"), ("{1: ", "}"), ("size([", "])")] {
        let error = evaluate(&nested(open, close), &Value::Null);
        assert!(error.ends_with(deep), "{open}: {error}");
    }
    for chain in ["self.a", "self[0]", "self + 1"] {
        let (first, more) = chain.split_at(4);
        let error = evaluate(&format!("{first}{}", more.repeat(300)), &Value::Null);
        assert!(error.ends_with(deep), "{chain}: {error}");
    }
    let just_so = format!("{}1{} == 1", "(".repeat(200), ")".repeat(200));
    assert_eq!(evaluate(&just_so, &Value::Null), "a value");
    let long = format!("true{}", " && true".repeat(10_000));
    assert_eq!(evaluate(&long, &Value::Null), "a value");
    let too_long = " ".repeat(100_001);
    assert!(evaluate(&too_long, &Value::Null).contains("code point size exceeds limit"));
}

#[test]
fn macro_expansion_is_bounded() {
    let chain = format!("optional.of(1){}", ".optMap(x, x)".repeat(60));
    assert!(evaluate(&chain, &Value::Null).contains("expression node limit exceeded"));
}

#[test]
fn deep_data_is_compared_and_converted() {
    let mut value = Value::Int(1);
    for _ in 0..pintle_value::DEPTH_MAX - 1 {
        value = Value::Array(vec![value]);
    }
    for expression in ["self == oldSelf", "[self] == [oldSelf]", "self in [oldSelf, self]", "self"]
    {
        assert_eq!(evaluate(expression, &value), "a value");
    }
}

#[test]
fn pattern_sizes_are_bounded() {
    for pattern in ["(a{1000}){1000}", "((a{100}){100}){100}", "(\\\\pL{1000}){100}"] {
        let error = evaluate(&format!("'a'.find('{pattern}')"), &Value::Null);
        assert!(error.starts_with("error parsing regexp"), "{pattern}: {error}");
    }
    let groups = format!("'a'.find('{}a{}')", "(".repeat(2000), ")".repeat(2000));
    assert!(evaluate(&groups, &Value::Null).starts_with("error parsing regexp"));
}

const TOKENS: &[&str] = &[
    "a",
    "self",
    "oldSelf",
    "x",
    "1",
    "-9223372036854775808",
    "2.5",
    "3u",
    "'a'",
    "\"b\"",
    "b'c'",
    "r'\\d'",
    "true",
    "null",
    "in",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    "?",
    ":",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "<",
    "<=",
    "==",
    "!=",
    "&&",
    "||",
    ".all(x, ",
    ".map(x, ",
    ".exists(",
    ".optMap(x, ",
    ".size()",
    "size(",
    "has(self.",
    ".?a",
    "[?0]",
    ".sortBy(x, ",
    ".sum()",
    "duration('1s')",
    "timestamp(0)",
    "optional.of(",
    "'%s'.format([",
    "é",
    "\n",
    "//",
    "`a`",
];

fn tokens() -> impl Strategy<Value = String> {
    let token = prop::sample::select(TOKENS);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

/// Expressions that mostly compile, because `dyn` allows operands of any type.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(
        &[
            "self",
            "self.a",
            "self.b[0]",
            "oldSelf",
            "1",
            "-1",
            "2u",
            "1.5",
            "'a'",
            "'é'",
            "b'x'",
            "true",
            "null",
            "[]",
            "[1, 2]",
            "{'a': 1}",
            "duration('1h')",
            "timestamp(0)",
            "optional.none()",
            "9223372036854775807",
            "quantity('1k')",
            "ip('::1')",
            "type(1)",
        ][..],
    );
    leaf.prop_map(|leaf| format!("dyn({leaf})")).prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let operators = prop::sample::select(
            &["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "in"][..],
        );
        let methods = prop::sample::select(
            &[
                "size()",
                "sum()",
                "min()",
                "isSorted()",
                "sort()",
                "distinct()",
                "flatten()",
                "reverse()",
                "first()",
                "last()",
                "join()",
                "join(', ')",
                "split('')",
                "trim()",
                "lowerAscii()",
                "charAt(1)",
                "substring(1)",
                "indexOf('a')",
                "replace('', 'b')",
                "startsWith('a')",
                "matches('a*')",
                "find('.')",
                "findAll('.')",
                "getHours()",
                "getFullYear('+01:00')",
                "value()",
                "hasValue()",
                "asInteger()",
                "family()",
                "all(x, x > 1)",
                "exists(x, x == 1)",
                "map(x, x)",
                "filter(x, true)",
                "all(i, v, v)",
                "transformMap(k, v, [k, v])",
                "sortBy(x, x)",
                "slice(0, 1)",
                "a",
                "?a",
                "format([1])",
            ][..],
        );
        prop_oneof![
            (two, operators).prop_map(|((a, b), op)| format!("dyn({a} {op} {b})")),
            (inner.clone(), methods).prop_map(|(a, method)| format!("dyn({a}.{method})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("dyn({a}[{b}])")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("dyn({a} ? {b} : {c})")),
            inner.clone().prop_map(|a| format!("dyn([{a}, {a}])")),
            inner.prop_map(|a| format!("dyn('%s %d'.format([{a}, {a}]))")),
        ]
    })
}

fn data() -> Value {
    let list = Value::from(vec![Value::Int(1), Value::from("a"), Value::Float(0.5), Value::Null]);
    Value::from([("a", Value::Int(3)), ("b", list), ("c", Value::object())])
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC{0,40}") {
        let _ = evaluate(&text, &data());
    }

    #[test]
    fn arbitrary_tokens_do_not_panic(text in tokens()) {
        let _ = evaluate(&text, &data());
    }

    #[test]
    fn costs_stay_within_the_limit(text in expressions(), limit in 0_u64..60) {
        if let Ok(program) = environment().compile(&text) {
            let value = data();
            let bindings = Bindings::new().with(&value).with(&value);
            let mut context = Context::new(limit);
            let result = program.evaluate_in(&bindings, &mut context, |_, _| Ok(()));
            let over = context.cost() > limit;
            prop_assert_eq!(over, result.is_err_and(|e| e.is_cancelled()), "{}", text);
        }
    }

    #[test]
    fn escaping_round_trips(name in "[a-z_./-]{1,12}") {
        if let Some(escaped) = crate::escape(&name) {
            prop_assert_eq!(crate::unescape(&escaped), Some(name));
        }
    }
}
