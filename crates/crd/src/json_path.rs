//! Kubernetes' dialect of JSONPath (`k8s.io/client-go/util/jsonpath`), for printer columns and
//! selectable fields. Missing members are not errors.

use pintle_value::{Str, Value};

use crate::structural::number;

#[cfg(test)]
mod tests;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name`, `['name']`
    Field(Str),
    /// `.*`, `[*]`
    All,
    /// `..`: the value and all its descendants.
    Deep,
    /// `[1]`, `[1:3]`, `[::2]`; negative indices count from the end.
    Slice { from: Option<i64>, to: Option<i64>, by: i64, one: bool },
    /// `[0,2]`, `['a','b']`
    Union(Vec<Step>),
    /// `[?(@.a=="b")]`
    Filter(Operand, Operator, Operand),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    /// Relative to the current item.
    Path(JsonPath),
    Constant(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const OPERATORS: &[(&str, Operator)] = &[
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// The maximum nesting of filters.
const DEPTH_MAX: usize = 16;
/// The maximum number of values that a path yields.
const VALUES_MAX: usize = 10_000;
/// The maximum number of values that finding a path visits, in all its filters.
pub(crate) const VISITS_MAX: usize = 100_000;
/// The number of bytes of text that count as one visited value.
const VISIT_BYTES: usize = 64;

/// Whether a text is a path, such as `.spec.replicas`.
pub fn is_json_path(text: &str) -> bool {
    JsonPath::parse(text).is_some()
}

impl JsonPath {
    /// Parses a path such as `.spec.replicas`; `None` if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::parse_at(text, 0)
    }

    fn parse_at(text: &str, depth: usize) -> Option<Self> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut rest = text.trim();
        rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("..") {
                steps.push(Step::Deep);
                rest = after;
                if !rest.starts_with('[') {
                    let (step, after) = field(rest)?;
                    steps.push(step);
                    rest = after;
                }
            } else if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() || after.starts_with('[') {
                    rest = after;
                    continue;
                }
                let (step, after) = field(after)?;
                steps.push(step);
                rest = after;
            } else if let Some(after) = rest.strip_prefix('[') {
                let (inside, after) = bracketed(after)?;
                steps.push(subscript(inside.trim(), depth)?);
                rest = after;
            } else {
                let (step, after) = field(rest)?;
                steps.push(step);
                rest = after;
            }
        }
        Some(Self { steps })
    }

    /// The values at the path, in order, visiting at most `left` values, which several paths may
    /// share. Past that there are none.
    pub(crate) fn find<'v>(&self, value: &'v Value, left: &mut usize) -> Vec<&'v Value> {
        let mut found = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.take(value, &mut next, left);
            }
            next.truncate(VALUES_MAX);
            found = next;
        }
        if *left == 0 { Vec::new() } else { found }
    }

    /// The members from the root, if the path consists only of members.
    pub(crate) fn members(&self) -> Option<Vec<Str>> {
        let member = |step: &Step| match step {
            Step::Field(name) => Some(name.clone()),
            _ => None,
        };
        self.steps.iter().map(member).collect()
    }
}

/// Parses a name up to the next dot or bracket; a backslash escapes a character.
fn field(text: &str) -> Option<(Step, &str)> {
    let mut name = Str::default();
    let mut letters = text.char_indices();
    let mut end = text.len();
    while let Some((at, c)) = letters.next() {
        match c {
            '\\' => name.push(letters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            ' ' | '{' | '}' | '(' | ')' | '=' | '!' | '<' | '>' | '|' | '&' => return None,
            _ => name.push(c),
        }
    }
    let step = match name.as_str() {
        "" => return None,
        "*" => Step::All,
        _ => Step::Field(name),
    };
    Some((step, &text[end..]))
}

/// The content of brackets, and the rest.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (1, None);
    let mut letters = text.char_indices();
    while let Some((at, c)) = letters.next() {
        match (quote, c) {
            (_, '\\') => _ = letters.next(),
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some((&text[..at], &text[at + 1..]));
                }
            }
            _ => {}
        }
    }
    None
}

fn subscript(text: &str, depth: usize) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        return self::filter(filter.trim(), depth);
    }
    if let Some(name) = quoted(text) {
        return Some(Step::Field(name));
    }
    if text.contains(',') {
        let parts = text.split(',').map(|part| subscript(part.trim(), depth + 1));
        return parts.collect::<Option<_>>().map(Step::Union);
    }
    let number = |text: &str| {
        let text = text.trim();
        if text.is_empty() { Some(None) } else { text.parse::<i64>().ok().map(Some) }
    };
    let mut parts = text.split(':');
    let from = number(parts.next()?)?;
    let Some(to) = parts.next() else {
        return from.map(|at| Step::Slice { from: Some(at), to: None, by: 1, one: true });
    };
    let (to, by) = (number(to)?, number(parts.next().unwrap_or_default())?.unwrap_or(1));
    (parts.next().is_none() && by > 0).then_some(Step::Slice { from, to, by, one: false })
}

/// The text in quotes, if there is nothing else.
fn quoted(text: &str) -> Option<Str> {
    let open = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inside = text.strip_prefix(open)?.strip_suffix(open)?;
    let mut plain = Str::default();
    let mut letters = inside.chars();
    while let Some(c) = letters.next() {
        match c {
            '\\' => plain.push(letters.next()?),
            c if c == open => return None,
            c => plain.push(c),
        }
    }
    Some(plain)
}

fn filter(text: &str, depth: usize) -> Option<Step> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, _) => {
                let rest = &text[at..];
                let found = OPERATORS.iter().find(|(word, _)| rest.starts_with(word));
                if let Some((word, operator)) = found {
                    let left = operand(&text[..at], depth)?;
                    return Some(Step::Filter(
                        left,
                        *operator,
                        operand(&rest[word.len()..], depth)?,
                    ));
                }
            }
        }
    }
    Some(Step::Filter(operand(text, depth)?, Operator::Exists, Operand::Constant(Value::Null)))
}

fn operand(text: &str, depth: usize) -> Option<Operand> {
    let text = text.trim();
    if text.starts_with(['@', '$', '.']) {
        return JsonPath::parse_at(text, depth + 1).map(Operand::Path);
    }
    if let Some(text) = quoted(text) {
        return Some(Operand::Constant(Value::String(text)));
    }
    pintle_value::json::parse(text.as_bytes()).ok().map(Operand::Constant)
}

impl Step {
    /// Appends the values of this step, visiting at most `left` values.
    fn take<'v>(&self, value: &'v Value, out: &mut Vec<&'v Value>, left: &mut usize) {
        match (self, value) {
            (Self::Field(name), _) => extend(out, value.get(name), left),
            (Self::All, Value::Object(members)) => extend(out, members.values(), left),
            (Self::All, Value::Array(items)) => extend(out, items, left),
            (Self::Deep, _) => deep(value, out, left),
            (Self::Union(steps), _) => steps.iter().for_each(|step| step.take(value, out, left)),
            (Self::Slice { from, to, by, one }, Value::Array(items)) => {
                let len = items.len() as i64;
                let index = |at: i64| if at < 0 { at + len } else { at };
                let from = index(from.unwrap_or(0));
                let to = if *one { from.saturating_add(1) } else { to.map_or(len, index) };
                let mut at = from.max(0);
                while from >= 0 && at < to.min(len) {
                    let item = usize::try_from(at).ok().and_then(|at| items.get(at));
                    extend(out, item, left);
                    at = at.saturating_add(*by);
                }
            }
            (Self::Filter(a, operator, b), Value::Array(items)) => {
                for item in items {
                    if !visit(left) {
                        return;
                    }
                    if holds(a, *operator, b, item, left) {
                        out.push(item);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Counts a visited value; returns false if there were too many.
const fn visit(left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    *left > 0
}

fn extend<'v>(
    out: &mut Vec<&'v Value>,
    values: impl IntoIterator<Item = &'v Value>,
    left: &mut usize,
) {
    out.extend(values.into_iter().take_while(|_| visit(left)));
}

fn deep<'v>(value: &'v Value, out: &mut Vec<&'v Value>, left: &mut usize) {
    if out.len() >= VALUES_MAX || !visit(left) {
        return;
    }
    out.push(value);
    match value {
        Value::Object(members) => members.values().for_each(|member| deep(member, out, left)),
        Value::Array(items) => items.iter().for_each(|item| deep(item, out, left)),
        _ => {}
    }
}

fn holds(
    left: &Operand,
    operator: Operator,
    right: &Operand,
    item: &Value,
    visits: &mut usize,
) -> bool {
    let Some(left) = left.of(item, visits) else { return false };
    if operator == Operator::Exists {
        return true;
    }
    let Some(right) = right.of(item, visits) else { return false };
    let order = match (number(left), number(right), left.as_str(), right.as_str()) {
        (Some(a), Some(b), ..) => a.partial_cmp(&b),
        (_, _, Some(a), Some(b)) => {
            *visits = visits.saturating_sub(a.len().min(b.len()) / VISIT_BYTES);
            Some(a.cmp(b))
        }
        _ => is_same(left, right, visits).then_some(std::cmp::Ordering::Equal),
    };
    match operator {
        Operator::Exists => true,
        Operator::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
        Operator::NotEqual => !order.is_some_and(std::cmp::Ordering::is_eq),
        Operator::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        Operator::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
        Operator::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        Operator::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}

/// Whether two values are equal.
fn is_same(a: &Value, b: &Value, left: &mut usize) -> bool {
    if !visit(left) {
        return false;
    }
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b, left))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b, left)))
        }
        (Value::String(a), Value::String(b)) => {
            *left = left.saturating_sub(a.len().min(b.len()) / VISIT_BYTES);
            a == b
        }
        (a, b) => a == b,
    }
}

impl Operand {
    /// The value of the operand for an item.
    fn of<'v>(&'v self, item: &'v Value, left: &mut usize) -> Option<&'v Value> {
        match self {
            Self::Path(path) => path.find(item, left).first().copied(),
            Self::Constant(value) => Some(value),
        }
    }
}
