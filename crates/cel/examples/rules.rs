//! Measures rules, and the time and memory that a hostile rule can use:
//!
//!     cargo run --release -p pintle-cel --example rules

#![expect(clippy::print_stdout, reason = "an example tells what it measured")]

use std::time::Duration;

use pintle_cel::{
    Bindings, Budget, COST_MAX, Declaration, Environment, Merge, Object, Program, SIZE_MAX,
};
use pintle_value::{Value, json};

const ROUNDS: u32 = 100_000;

/// Typical rules of definitions.
const TYPICAL: &[&str] = &[
    "self.min <= self.replicas && self.replicas <= self.max",
    "!has(self.tls) || self.protocol == 'HTTPS'",
    "self.protocol in ['HTTP', 'HTTPS', 'TLS', 'TCP', 'UDP']",
    "self.image.startsWith('registry.example/') || self.image.contains(':')",
    "self.image.matches('^[a-z0-9]([-a-z0-9./:]*[a-z0-9])?$')",
    "quantity(self.cpu).isLessThan(quantity('4'))",
    "self.ports.all(p, p.number > 0 && p.number < 65536)",
    "self.ports.all(a, self.ports.exists_one(b, a.name == b.name && a.number == b.number))",
    "self.ports.map(p, p.name).join(',').size() < 200",
    "self.ports.filter(p, p.name.startsWith('p')).size() == size(self.ports)",
    "self.protocol == oldSelf.protocol",
    "self == oldSelf",
];

const OBJECT: &str = r#"{"min": 1, "replicas": 3, "max": 9, "protocol": "HTTP", "cpu": "500m",
    "image": "registry.example/team/web:1.2.3", "ports": [
    {"name": "p0", "number": 80}, {"name": "p1", "number": 81}, {"name": "p2", "number": 82},
    {"name": "p3", "number": 83}, {"name": "p4", "number": 84}, {"name": "p5", "number": 85},
    {"name": "p6", "number": 86}, {"name": "p7", "number": 87}]}"#;

/// Rules that try to use much time or memory. The content of `LOOP` is evaluated for many numbers.
const HOSTILE: &[(&str, &str)] = &[
    ("loops in loops", "self.n.all(a, self.n.all(b, self.n.all(c, a + b + c >= 0)))"),
    ("a text that doubles", "LOOP(self.n.map(a, self.t + self.t).size() > 0)"),
    (
        "texts put together",
        "self.n.map(a, self.n.map(b, 'xxxxxxxxxxxxxxxx' + string(b)).join('-')).join('-').size() > 0",
    ),
    ("lists put together", "optional.of(self.n)STEPS.optMap(x, x.sum()).hasValue()"),
    ("a range", "lists.range(9000000000000).size() > 0"),
    ("ranges retained", "self.n.map(a, lists.range(900000)).size() > 0"),
    ("a slice retained", "self.n.map(a, self.n.slice(0, 200000)).size() > 0"),
    ("a list sorted again and again", "LOOP(self.n.sort().size() > 0)"),
    ("sets of lists", "LOOP(sets.contains(self.n, self.n))"),
    ("distinct items", "self.n.distinct().size() > 0"),
    ("lists compared", "LOOP([self.n] == [self.n])"),
    ("texts compared", "LOOP([self.t] == [self.u])"),
    ("a text looked up", "LOOP(self.t in {self.u: 1})"),
    ("a text counted", "LOOP(self.t.size() > 0)"),
    ("its last character", "LOOP(self.t.charAt(900000) != '')"),
    ("a text as a number", "LOOP(int(self.d) > 0)"),
    ("a text as a duration", "LOOP(duration(self.d) > duration('1s'))"),
    ("a text as a time", "LOOP(timestamp(self.d) > timestamp(0))"),
    ("a text cut in characters", "self.t.split('').size() > 0"),
    ("all replaced by much", "self.d.replace('0', self.d).size() > 0"),
    ("formatted", "LOOP('%s%s%s%s'.format([self.t, self.t, self.t, self.t]).size() > 0)"),
    ("a missing key", "self.n.exists(a, {'a': 1}[self.t] == 1)"),
    ("a slow pattern", "self.ab.matches('(a|b)*a(a|b){900}c')"),
    ("many patterns", "LOOP('aaaa'.matches('(\\\\pL{9}){' + string(a % 50) + '}'))"),
    ("a great pattern found", "LOOP(self.ab.find('(.{30}){30}c') == '')"),
    ("quantities", "LOOP(quantity(self.d).isGreaterThan(quantity('1')))"),
    ("URLs", "LOOP(isURL('http://' + self.d))"),
];

/// The CPU time of this thread, which is independent of other load.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("nanoseconds"))
}

fn any() -> Declaration {
    Declaration::Dyn { size_max: SIZE_MAX }
}

fn typical() -> Environment {
    let text = || Declaration::String { size_max: 100 };
    let port = [("name".into(), text()), ("number".into(), Declaration::Int)];
    let port = Declaration::Object(Object::new("port", port));
    let fields = [
        ("min".into(), Declaration::Int),
        ("replicas".into(), Declaration::Int),
        ("max".into(), Declaration::Int),
        ("protocol".into(), text()),
        ("cpu".into(), text()),
        ("image".into(), text()),
        ("tls".into(), any()),
        ("ports".into(), Declaration::list(port, Merge::Atomic, 64)),
    ];
    let declared = std::sync::Arc::new(Declaration::Object(Object::new("self", fields)));
    Environment::new().with("self", declared.clone()).with("oldSelf", declared)
}

fn evaluate(program: &Program, value: &Value) -> String {
    let bindings = Bindings::new().with(value).with(value);
    let result = program.evaluate(&bindings, &mut Budget::new(COST_MAX));
    result.map_or_else(|error| error.to_string(), |value| json::to_string(&value))
}

fn time_typical() {
    let (environment, value) = (typical(), json::parse(OBJECT.as_bytes()).expect("JSON"));
    println!("typical rules: processor time, allocations, cost");
    for rule in TYPICAL {
        let program = environment.compile(rule).expect("compiles");
        let start = processor_time();
        for _ in 0..ROUNDS {
            std::hint::black_box(evaluate(&program, &value));
        }
        let taken = (processor_time() - start) / ROUNDS;
        let counted = allocation_counter::measure(|| {
            std::hint::black_box(evaluate(&program, &value));
        });
        let mut budget = Budget::new(COST_MAX);
        let bindings = Bindings::new().with(&value).with(&value);
        program.evaluate(&bindings, &mut budget).expect("evaluates");
        let cost = COST_MAX - budget.left();
        println!("{taken:>8.2?} {:>3} {cost:>4}  {rule}", counted.count_total);
    }
}

fn hostile_value() -> Value {
    let numbers: Vec<Value> = (0..200_000).map(Value::Int).collect();
    Value::from([
        ("n", Value::from(numbers)),
        ("t", Value::from("é".repeat(1_000_000))),
        ("u", Value::from("é".repeat(1_000_000))),
        ("d", Value::from("0".repeat(1_000_000))),
        ("ab", Value::from("ab".repeat(100_000))),
    ])
}

fn time_hostile() {
    let environment = Environment::new().with("self", any()).with("oldSelf", any());
    let value = hostile_value();
    println!("hostile rules: time to compile and to evaluate, most memory");
    for (what, rule) in HOSTILE {
        let steps = ".optMap(x, x + x + x + x + x + x + x + x + x)".repeat(8);
        let rule = rule.replace("STEPS", &steps);
        let rule = match rule.strip_prefix("LOOP(").and_then(|rule| rule.strip_suffix(')')) {
            Some(inner) => format!("self.n.all(a, {inner} || true)"),
            None => rule,
        };
        let start = processor_time();
        let program = environment.compile(&rule).expect(&rule);
        let compiled = processor_time() - start;
        let start = processor_time();
        let mut outcome = String::new();
        let counted = allocation_counter::measure(|| outcome = evaluate(&program, &value));
        let taken = processor_time() - start;
        let memory = counted.bytes_max / 1_000_000;
        outcome.truncate(30);
        println!("{compiled:>9.2?} {taken:>9.2?} {memory:>4} MB  {what}: {outcome}");
    }
    let patterns = "'a'.matches('(\\\\pL{30}){30}') || ".repeat(3000) + "true";
    let start = processor_time();
    let refused = environment.compile(&patterns).is_err();
    println!("{:>9.2?}  thousands of great patterns: refused {refused}", processor_time() - start);
}

fn main() {
    time_typical();
    time_hostile();
}
