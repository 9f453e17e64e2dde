//! The estimated cost of calls.

use super::estimate::Estimator;
use super::{
    Estimate, LIST, PATTERN, Part, TRAVERSAL, compares_lengths, declared_size, fixed, is_sort,
    selector_cost, sets_factor,
};
use crate::ast::{Call, Expr, Literal};
use crate::types::Type;

/// The cost of a call, and the size of its result if known.
#[derive(Clone, Copy)]
pub(super) struct CallEstimate {
    pub(super) cost: Estimate,
    pub(super) size: Option<Estimate>,
}

impl CallEstimate {
    const fn cost(cost: Estimate) -> Self {
        Self { cost, size: None }
    }

    const fn fixed(cost: u64) -> Self {
        Self::cost(Estimate::fixed(cost))
    }

    const fn sized(cost: Estimate, size: Estimate) -> Self {
        Self { cost, size: Some(size) }
    }
}

/// The length that the estimate assumes for the pattern of a named format, as upstream's. The
/// pattern of `uri` is longer.
const FORMAT_PATTERN: f64 = 128.0;

/// The length that the estimate assumes for the longest name of a format, as upstream's.
const FORMAT_NAME: u64 = 64;

const ONE: Estimate = Estimate::fixed(1);

impl Estimator<'_> {
    /// The cost of a call including that of its arguments (but not of its receiver).
    pub(super) fn call_of(
        &mut self,
        expr: &Expr,
        call: &Call,
        target: Option<&Expr>,
        overload: &str,
        costs: &[Estimate],
    ) -> CallEstimate {
        let args = || costs.iter().copied().fold(Estimate::ZERO, Estimate::plus);
        let own = self.list_call(target, &call.args, overload);
        let own = own.or_else(|| self.library_call(expr, call, target, overload));
        if let Some(own) = own.or_else(|| self.standard_call(expr, call, target, overload)) {
            return CallEstimate { cost: own.cost.plus(args()), ..own };
        }
        match (overload, costs) {
            // The first operand alone may decide.
            ("logical_or" | "logical_and", [a, b]) => {
                CallEstimate::cost(Estimate { min: a.min, max: a.plus(*b).max })
            }
            ("conditional", [condition, truthy, falsy]) => {
                let [_, a, b] = &call.args[..] else { return CallEstimate::cost(args()) };
                let size = self.size_or_unknown(a).or(self.size_or_unknown(b));
                self.join_entries(expr, a, b);
                CallEstimate::sized(condition.plus(truthy.or(*falsy)), size)
            }
            _ => CallEstimate::cost(args().plus(ONE)),
        }
    }

    /// The functions of the list library, which take precedence over all others.
    fn list_call(
        &mut self,
        target: Option<&Expr>,
        args: &[Expr],
        overload: &str,
    ) -> Option<CallEstimate> {
        let made = |factor: f64, size: Estimate| {
            let cost = size.scaled(factor).plus(Estimate::fixed(1 + LIST));
            CallEstimate::sized(cost, size)
        };
        if let Some(factor) = sets_factor(overload) {
            let [a, b] = args else { return None };
            let product = self.size_or_unknown(a).times(self.size_or_unknown(b));
            return Some(CallEstimate::cost(product.scaled(factor).plus(ONE)));
        }
        match (overload, target, args) {
            ("list_slice", Some(list), [start, end]) => {
                let size = self.size_or_unknown(list);
                let length = int_or(end, size.max).wrapping_sub(int_or(start, 0));
                Some(made(1.0, Estimate::fixed(length)))
            }
            ("lists_range", None, [n]) => Some(made(1.0, Estimate::fixed(int_or(n, u64::MAX)))),
            ("list_reverse", Some(list), []) => Some(made(1.0, self.size_or_unknown(list))),
            ("list_flatten", Some(list), []) => Some(made(1.0, self.size_or_unknown(list))),
            ("list_flatten_int", Some(list), [depth]) => {
                let depth = int_or(depth, u64::MAX) as f64;
                Some(made(depth, self.size_or_unknown(list)))
            }
            ("list_distinct", Some(list), []) => {
                let size = self.size_or_unknown(list);
                Some(made(2.0, size.times(size)))
            }
            (_, Some(list), []) if is_sort(overload, "_sort") => {
                let size = self.size_or_unknown(list);
                Some(made(sort_factor(overload), size.times(size)))
            }
            (_, Some(_), [keys]) if is_sort(overload, "_sortByAssociatedKeys") => {
                let size = self.size_or_unknown(keys);
                Some(made(sort_factor(overload), size.times(size)))
            }
            _ => None,
        }
    }

    /// The functions of Kubernetes' own libraries and of the string library, by name.
    fn library_call(
        &mut self,
        expr: &Expr,
        call: &Call,
        target: Option<&Expr>,
        overload: &str,
    ) -> Option<CallEstimate> {
        let args = &call.args[..];
        let text = |size: Estimate| size.scaled(TRAVERSAL);
        let once = |size: Estimate| CallEstimate::cost(text(size));
        let name = self.checked.function(expr).unwrap_or_default();
        if let Some(cost) = fixed(name, overload) {
            return Some(CallEstimate::fixed(cost));
        }
        match (name, target, args) {
            ("fieldSelector" | "labelSelector", _, [selector]) => {
                Some(CallEstimate::cost(selector_cost(self.size_or_unknown(selector))))
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(list), _) => {
                Some(self.traversal(list))
            }
            ("url", _, [arg]) => {
                let size = self.size_or_unknown(arg);
                Some(CallEstimate::sized(text(size), size))
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                let size = self.size_or_unknown(target);
                Some(CallEstimate::sized(text(size), size))
            }
            ("replace", Some(target), [from, to, ..]) => Some(self.replace(target, from, to)),
            ("split", Some(target), args) => {
                let size = self.size_or_unknown(target);
                let limit = args.get(1).and_then(int).map(|n| n as u64);
                let parts = Estimate { min: 0, max: limit.unwrap_or(size.max) };
                Some(CallEstimate::sized(size.scaled(2.0 * TRAVERSAL), parts))
            }
            ("join", Some(target), args) => Some(self.join(target, args.first())),
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let size = self.size_or_unknown(target);
                let pattern = self.size_or_unknown(pattern).scaled(PATTERN);
                let cost = text(size.plus(ONE)).times(pattern);
                Some(CallEstimate::sized(cost, Estimate { min: 0, max: size.max }))
            }
            ("cidr" | "isIP" | "isCIDR" | "ip", _, [arg, ..])
            | ("quantity" | "isQuantity" | "semver" | "isSemver", _, [arg, ..]) => {
                Some(once(self.size_or_unknown(arg)))
            }
            ("ip.isCanonical", _, [arg, ..]) => {
                Some(CallEstimate::cost(self.size_or_unknown(arg).scaled(2.0 * TRAVERSAL)))
            }
            ("containsIP" | "containsCIDR", _, [arg, ..]) => {
                Some(self.contains_address(name, overload, arg))
            }
            ("validate", _, [arg, ..]) => {
                let cost = text(self.size_or_unknown(arg)).scaled(FORMAT_PATTERN * PATTERN);
                Some(CallEstimate::cost(cost))
            }
            ("_==_", _, [a, b]) => self.opaque_equality(a, b),
            _ => None,
        }
    }

    /// Traverses a list, including its items if they are texts, or a text.
    fn traversal(&mut self, target: &Expr) -> CallEstimate {
        let size = self.size_or_unknown(target);
        let Some((t, items)) = self.items_of(target) else {
            return CallEstimate::cost(size.scaled(TRAVERSAL));
        };
        let mut item = ONE;
        if matches!(t, Type::String | Type::Bytes) {
            item = item.plus(items.scaled(TRAVERSAL));
        }
        CallEstimate::cost(size.times(item))
    }

    /// The type of a list's items (or a map's keys) and their size.
    fn items_of(&self, list: &Expr) -> Option<(Type, Estimate)> {
        let t = self.checked.type_of(list);
        let inner = (*t.parameters().first()?).clone();
        let size = self.root_path(list).and_then(|mut path| {
            path.push(Part::Items);
            declared_size(self.scope, &path)
        });
        Some((inner, size.unwrap_or(Estimate::UNKNOWN)))
    }

    fn replace(&mut self, target: &Expr, from: &Expr, to: &Expr) -> CallEstimate {
        let size = self.size_or_unknown(target);
        let from = self.size_or_unknown(from);
        let to = self.size_or_unknown(to);
        let parts = |n: u64, of: u64| (n as f64 / of as f64).ceil() as u64;
        // The longest result: the replacement occurs around each character, ...
        let (count_max, items_max) = if from.min == 0 {
            (size.max.saturating_add(1), size.max)
        } else if to.max <= from.min {
            (0, size.max)
        } else {
            (parts(size.max, from.min), 0)
        };
        // ... and the shortest.
        let (count_min, items_min) = if from.max == 0 {
            (size.min.saturating_add(1), size.min)
        } else if from.max <= to.min {
            (0, size.min)
        } else {
            (parts(size.min, from.max), 0)
        };
        let count = Estimate { min: count_min, max: count_max };
        let items = Estimate { min: items_min, max: items_max };
        let result = count.times(to).plus(items);
        CallEstimate::sized(size.scaled(2.0 * TRAVERSAL), result)
    }

    fn join(&mut self, list: &Expr, separator: Option<&Expr>) -> CallEstimate {
        let length = self.size_or_unknown(list);
        let mut size = match self.items_of(list) {
            Some((_, items)) => length.times(items),
            None => Estimate::ZERO,
        };
        if let Some(separator) = separator {
            let count =
                Estimate { min: length.min.saturating_sub(1), max: length.max.saturating_sub(1) };
            size = size.plus(self.size_or_unknown(separator).times(count));
        }
        CallEstimate::sized(size.scaled(TRAVERSAL), size)
    }

    fn contains_address(&mut self, name: &str, overload: &str, arg: &Expr) -> CallEstimate {
        let bytes = Estimate { min: 4, max: 16 };
        let mut cost = bytes.plus(bytes).scaled(TRAVERSAL);
        if name == "containsCIDR" {
            cost = cost.plus(bytes.scaled(TRAVERSAL)).plus(ONE);
        }
        if overload.ends_with("_string") {
            cost = cost.plus(self.size_or_unknown(arg).scaled(TRAVERSAL));
        }
        CallEstimate::cost(cost)
    }

    fn opaque_equality(&mut self, a: &Expr, b: &Expr) -> Option<CallEstimate> {
        let (ta, tb) = (self.checked.type_of(a), self.checked.type_of(b));
        if !ta.is_exactly(tb) {
            return None;
        }
        match ta {
            Type::Opaque("net.IP" | "net.CIDR") => Some(CallEstimate::fixed(1)),
            Type::Struct("kubernetes.NamedFormat") => {
                let cost = Estimate { min: 1, max: FORMAT_NAME }.scaled(TRAVERSAL);
                Some(CallEstimate::cost(cost))
            }
            Type::Struct("kubernetes.URL") => {
                let size = self.size(b).map_or(1, |size| size.max);
                Some(CallEstimate::cost(Estimate { min: 1, max: size }.scaled(TRAVERSAL)))
            }
            Type::Struct(_) => Some(CallEstimate::fixed(1)),
            _ => None,
        }
    }

    /// The functions of the language itself.
    fn standard_call(
        &mut self,
        expr: &Expr,
        call: &Call,
        target: Option<&Expr>,
        overload: &str,
    ) -> Option<CallEstimate> {
        match (overload, target, &call.args[..]) {
            ("string_format", Some(target), _) => {
                Some(CallEstimate::cost(self.size_or_unknown(target).scaled(TRAVERSAL)))
            }
            ("string_to_bytes", _, [arg]) => {
                let size = self.size_or_unknown(arg);
                let result = Estimate { min: size.min, max: size.max.wrapping_mul(4) };
                Some(CallEstimate::sized(size.scaled(TRAVERSAL), result))
            }
            ("bytes_to_string", _, [arg]) => {
                let size = self.size_or_unknown(arg);
                let result = Estimate { min: size.min / 4, max: size.max };
                Some(CallEstimate::sized(size.scaled(TRAVERSAL), result))
            }
            ("strings_quote", _, [arg]) => {
                let size = self.size_or_unknown(arg);
                let (min, max) = (size.min.wrapping_add(2), size.max.wrapping_mul(2));
                let result = Estimate { min, max: max.wrapping_add(2) };
                Some(CallEstimate::sized(size.scaled(TRAVERSAL), result))
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => {
                Some(CallEstimate::cost(self.size_or_unknown(arg).scaled(TRAVERSAL)))
            }
            ("in_list", _, [_, list]) => {
                Some(CallEstimate::cost(self.size_or_unknown(list).scaled(1.0)))
            }
            ("matches_string", Some(target), [pattern]) => {
                let text = self.size_or_unknown(target).plus(ONE).scaled(TRAVERSAL);
                let pattern = self.size_or_unknown(pattern).scaled(PATTERN);
                Some(CallEstimate::cost(text.times(pattern)))
            }
            ("contains_string", Some(target), [part]) => {
                let text = self.size_or_unknown(target).scaled(TRAVERSAL);
                Some(CallEstimate::cost(text.times(self.size_or_unknown(part).scaled(TRAVERSAL))))
            }
            ("add_string" | "add_bytes" | "add_list", _, [a, b]) => {
                let size = self.size_or_unknown(a).plus(self.size_or_unknown(b));
                self.join_entries(expr, a, b);
                let cost = if overload == "add_list" { ONE } else { size.scaled(TRAVERSAL) };
                Some(CallEstimate::sized(cost, size))
            }
            (_, _, [a, b]) if compares_lengths(overload) => {
                let max = self.size_or_unknown(a).max.min(self.size_or_unknown(b).max);
                let cost = Estimate { min: u64::from(max > 0), max };
                Some(CallEstimate::cost(cost.scaled(TRAVERSAL)))
            }
            _ => None,
        }
    }
}

/// The cost factor of comparing each item with each other; texts are traversed for that.
fn sort_factor(overload: &str) -> f64 {
    let is_text = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
    if is_text { 2.0 + TRAVERSAL } else { 2.0 }
}

fn int(expr: &Expr) -> Option<i64> {
    match expr.as_literal() {
        Some(Literal::Int(n)) => Some(*n),
        _ => None,
    }
}

fn int_or(expr: &Expr, otherwise: u64) -> u64 {
    match int(expr) {
        Some(n) if n >= 0 => n as u64,
        Some(_) => 0,
        None => otherwise,
    }
}
