//! The cost of calls at run time.

use super::{
    Estimate, LIST, PATTERN, TRAVERSAL, compares_lengths, fixed, is_sort, scaled, selector_cost,
    sets_factor, traversal,
};
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Overload;
use crate::value::{Text, Val};

/// The rule that computes a call's cost from its arguments and result. It is selected when the call
/// is planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Actual {
    Fixed(u64),
    /// The size of the first argument times a factor.
    First(f64),
    /// A traversal of the first argument, or of the value that it holds if it is an optional.
    /// Functions of the language itself do this.
    Target,
    /// Two traversals of the result.
    Result,
    /// The number of items of the second argument.
    Second,
    /// A traversal of the shorter argument.
    Shorter,
    /// A traversal of both arguments.
    Both,
    /// The product of the first and the second: a text and a pattern.
    Pattern,
    /// The same for the language's own function.
    Matches,
    /// The product of the first and the second, both as texts.
    Contains,
    /// A deep traversal of the first argument.
    Deep,
    /// A selector as second argument.
    Selector,
    /// A check that a range contains an address or, with `range`, another range. With `text`, the
    /// contained address or range is given as text.
    Address {
        range: bool,
        text: bool,
    },
    /// A text and the pattern of a named format.
    Format,
    /// Each item of the first argument with each of the second.
    Sets(f64),
    /// A list of the result's size.
    Made,
    /// A list of the first argument's size, times the depth.
    Flatten,
    /// Each pair of items of the argument with this index.
    SelfCompare(usize),
}

impl Actual {
    /// The rule for a call with these candidate overloads. If there are several, upstream ignores
    /// overloads.
    pub(crate) fn rule(name: &str, overloads: &[&'static Overload]) -> Self {
        let overload = match overloads {
            [one] => one.id,
            _ => "",
        };
        let by_list = Self::of_list(overload);
        by_list.or_else(|| Self::of_library(name, overload)).unwrap_or_else(|| match overload {
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format" => Self::Target,
            "in_list" => Self::Second,
            "add_string" | "add_bytes" => Self::Both,
            "matches_string" => Self::Matches,
            "contains_string" => Self::Contains,
            overload if compares_lengths(overload) => Self::Shorter,
            _ => Self::Fixed(1),
        })
    }

    fn of_list(overload: &str) -> Option<Self> {
        if let Some(factor) = sets_factor(overload) {
            return Some(Self::Sets(factor));
        }
        match overload {
            "list_slice" | "lists_range" | "list_reverse" => Some(Self::Made),
            "list_flatten" | "list_flatten_int" => Some(Self::Flatten),
            "list_distinct" => Some(Self::SelfCompare(0)),
            _ if is_sort(overload, "_sort") => Some(Self::SelfCompare(0)),
            _ if is_sort(overload, "_sortByAssociatedKeys") => Some(Self::SelfCompare(1)),
            _ => None,
        }
    }

    fn of_library(name: &str, overload: &str) -> Option<Self> {
        if let Some(cost) = fixed(name, overload) {
            return Some(Self::Fixed(cost));
        }
        match name {
            "fieldSelector" | "labelSelector" => Some(Self::Selector),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => Some(Self::Deep),
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                Some(Self::First(TRAVERSAL))
            }
            "replace" | "split" | "ip.isCanonical" => Some(Self::First(2.0 * TRAVERSAL)),
            "join" => Some(Self::Result),
            "find" | "findAll" => Some(Self::Pattern),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
            | "isSemver" => Some(Self::First(TRAVERSAL)),
            "containsIP" | "containsCIDR" => {
                let (range, text) = (name == "containsCIDR", overload.ends_with("_string"));
                Some(Self::Address { range, text })
            }
            "validate" => Some(Self::Format),
            _ => None,
        }
    }

    /// The cost of comparing two values.
    pub(crate) fn of_pair(self, a: &Val<'_>, b: &Val<'_>) -> u64 {
        match (a, b) {
            (Val::Opaque(_), _) => 1,
            (Val::Int(_) | Val::Bool(_), _) => 1,
            _ if self == Self::Fixed(1) => 1,
            (Val::String(a), Val::String(b)) => traversal(fewer_chars(a, b)),
            _ => traversal(a.inner_size().min(b.inner_size())),
        }
    }

    /// The cost of a call. A deep traversal of values counts as work.
    pub(crate) fn of_call(
        self,
        args: &[Val<'_>],
        result: Option<&Val<'_>>,
        context: &mut Context,
    ) -> Result<u64, EvalError> {
        match (self, args) {
            (Self::Deep, [first, ..]) => deep(first, context),
            _ => Ok(self.of(args, result)),
        }
    }

    /// The cost of a call, except for a deep traversal.
    fn of(self, args: &[Val<'_>], result: Option<&Val<'_>>) -> u64 {
        let size = |i: usize| args.get(i).map_or(1, Val::size);
        let inner = |i: usize| args.get(i).map_or(1, Val::inner_size);
        let pattern = |text: u64, pattern: u64| {
            traversal(text.saturating_add(1)).saturating_mul(scaled(pattern, PATTERN))
        };
        match self {
            Self::Fixed(cost) => cost,
            Self::First(factor) => scaled(size(0), factor),
            Self::Result => scaled(result.map_or(1, Val::size), 2.0 * TRAVERSAL),
            Self::Target => traversal(inner(0)),
            Self::Second => inner(1),
            Self::Shorter => match args {
                [a, b] => self.of_pair(a, b),
                _ => 1,
            },
            Self::Both => traversal(inner(0).saturating_add(inner(1))),
            Self::Pattern => pattern(size(0), size(1)),
            Self::Matches => pattern(inner(0), inner(1)),
            Self::Contains => traversal(inner(0)).saturating_mul(traversal(inner(1))),
            Self::Deep => 0,
            Self::Selector => selector_cost(Estimate::fixed(size(1))).max,
            Self::Address { range, text } => {
                let own = size(0);
                let masked = if range { traversal(own) + 1 } else { 0 };
                let parsed = if text { traversal(size(1)) } else { 0 };
                traversal(own * 2) + masked + parsed
            }
            Self::Format => {
                let length = match args.first() {
                    Some(Val::Opaque(opaque)) => opaque.pattern_length(),
                    _ => return 1,
                };
                pattern(size(1), length)
            }
            Self::Sets(factor) => 1 + (size(0).saturating_mul(size(1)) as f64 * factor) as u64,
            Self::Made => made(1.0, result.map_or(1, Val::size)),
            Self::Flatten => {
                let depth = match args.get(1) {
                    Some(Val::Int(depth)) => *depth as f64,
                    _ => 1.0,
                };
                made(depth, size(0))
            }
            Self::SelfCompare(i) => {
                let first = match args.get(i) {
                    Some(Val::List(list)) => list.get(0).and_then(Result::ok),
                    _ => None,
                };
                let is_text = matches!(first, Some(Val::String(_) | Val::Bytes(_)));
                let size = size(i);
                made(if is_text { 2.0 + TRAVERSAL } else { 2.0 }, size.saturating_mul(size))
            }
        }
    }
}

/// The smaller of two texts' numbers of characters. The text with more bytes is not counted if its
/// number of bytes already shows that it has more characters.
fn fewer_chars(a: &Text<'_>, b: &Text<'_>) -> u64 {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let count = short.chars_count();
    let fewest = long.len() / 4;
    (if count <= fewest { count } else { count.min(long.chars_count()) }) as u64
}

/// The cost of a call that produces a list.
fn made(factor: f64, size: u64) -> u64 {
    // Upstream truncates the fraction here, and lets negative numbers wrap.
    let scaled = size as f64 * factor;
    let scaled = if scaled < 0.0 { scaled as i64 as u64 } else { scaled as u64 };
    scaled.wrapping_add(1 + LIST)
}

/// The cost of a deep traversal of a value. It ends when it exceeds the cost that is left: values
/// can share parts, which are visited each time, so there may be far more visits than values.
fn deep(value: &Val<'_>, context: &mut Context) -> Result<u64, EvalError> {
    let mut cost = 0;
    add_deep(value, &mut cost, context)?;
    Ok(cost)
}

fn add_deep(value: &Val<'_>, cost: &mut u64, context: &mut Context) -> Result<(), EvalError> {
    // Short texts cost nothing, but must be visited.
    context.visit()?;
    if *cost > context.left() {
        return context.charge(*cost);
    }
    let own = match value {
        Val::String(text) => (text.len() as f64 * TRAVERSAL) as u64,
        Val::Bytes(bytes) => (bytes.len() as f64 * TRAVERSAL) as u64,
        Val::List(list) => {
            for item in list.iter() {
                match item {
                    Ok(item) => add_deep(&item, cost, context)?,
                    Err(_) => *cost = cost.saturating_add(1),
                }
            }
            0
        }
        Val::Map(map) => {
            context.work(map.len() as u64)?;
            for (key, value) in map.entries().unwrap_or_default() {
                add_deep(&key, cost, context)?;
                add_deep(&value, cost, context)?;
            }
            0
        }
        _ => 1,
    };
    *cost = cost.saturating_add(own);
    Ok(())
}
