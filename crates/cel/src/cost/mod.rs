//! The cost of evaluations: estimated from types and sizes, and computed exactly at run time.
//!
//! Both equal upstream's numbers: the estimate decides which expressions a definition may have, and
//! any difference would make one server reject expressions that the other accepts.

mod actual;
mod call;
mod estimate;

use crate::scope::Scope;
use crate::types::declaration::Declaration;

pub(crate) use actual::Actual;
pub(crate) use estimate::estimate;

/// A range from a minimum to a maximum: of a cost, or of a size. Overflow saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

/// The cost of traversing a text, per character.
const TRAVERSAL: f64 = 0.1;

/// The cost of traversing a pattern, per character.
const PATTERN: f64 = 0.25;

const LIST: u64 = 10;

const MAP: u64 = 30;

const STRUCT: u64 = 40;

impl Estimate {
    const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    const ZERO: Self = Self::fixed(0);

    const fn fixed(n: u64) -> Self {
        Self { min: n, max: n }
    }

    const fn plus(self, other: Self) -> Self {
        let Self { min, max } = other;
        Self { min: self.min.saturating_add(min), max: self.max.saturating_add(max) }
    }

    const fn times(self, other: Self) -> Self {
        let Self { min, max } = other;
        Self { min: self.min.saturating_mul(min), max: self.max.saturating_mul(max) }
    }

    fn scaled(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// `n` times `factor`, rounded up.
fn scaled(n: u64, factor: f64) -> u64 {
    // A float that exceeds the integer range saturates.
    (n as f64 * factor).ceil() as u64
}

/// The cost of one traversal of a text of this size.
fn traversal(size: u64) -> u64 {
    scaled(size, TRAVERSAL)
}

/// The cost of a function whose arguments do not matter.
fn fixed(name: &str, overload: &str) -> Option<u64> {
    match name {
        // The limit of one evaluation allows two authorization checks.
        "check" => Some(350_000),
        "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name"
        | "allowed" | "reason" | "error" | "errored" => Some(1),
        "ip" if overload == "cidr_ip" => Some(1),
        "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast" => Some(1),
        "format.named" => Some(1),
        "sign" | "asInteger" | "isInteger" | "asApproximateFloat" | "isGreaterThan"
        | "isLessThan" | "compareTo" | "add" | "sub" | "major" | "minor" | "patch" => Some(1),
        "getScheme" | "getHostname" | "getHost" | "getPort" | "getEscapedPath" | "getQuery" => {
            Some(1)
        }
        _ => None,
    }
}

/// Comparisons that may traverse their whole shorter operand.
fn compares_lengths(overload: &str) -> bool {
    matches!(overload, "equals" | "not_equals")
        || ["less", "less_equals", "greater", "greater_equals"].iter().any(|name| {
            let rest = overload.strip_prefix(name);
            matches!(rest, Some("_string" | "_bytes"))
        })
}

/// Selectors become lists of requirements; the shortest requirement has two characters.
fn selector_cost(size: Estimate) -> Estimate {
    let requirements = size.scaled(0.5).scaled((LIST + STRUCT) as f64);
    Estimate::fixed(LIST).plus(size.scaled(TRAVERSAL)).plus(requirements)
}

/// The cost factor of comparing each item of a list with each of another.
fn sets_factor(overload: &str) -> Option<f64> {
    match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => Some(1.0),
        "list_sets_equivalent_list" => Some(2.0),
        _ => None,
    }
}

fn is_sort(overload: &str, suffix: &str) -> bool {
    overload.starts_with("list_") && overload.ends_with(suffix)
}

/// A step from a variable to a part of it.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Name(std::sync::Arc<str>),
    Items,
    Keys,
    Values,
    Indices,
}

/// The size of the value at a path, as far as declarations specify it.
fn declared_size(scope: &Scope, path: &[Part]) -> Option<Estimate> {
    let (first, rest) = path.split_first()?;
    let named = match first {
        Part::Name(name) => scope.declaration(name),
        _ => None,
    };
    // In upstream every path begins at the single declared value, regardless of its first name.
    let root = named.or_else(|| scope.variables.first().map(|(_, d)| &**d))?;
    let mut declaration = root.present();
    let string = Declaration::String { size_max: 0 };
    for part in rest {
        declaration = match (part, declaration) {
            (Part::Items | Part::Values, Declaration::List(list)) => list.items.present(),
            (Part::Items | Part::Values, Declaration::Map(map)) => map.values.present(),
            (Part::Keys, Declaration::Map(_)) => &string,
            (Part::Name(name), Declaration::Object(object)) => {
                object.escaped_field(name)?.declaration().present()
            }
            _ => return None,
        };
    }
    Some(Estimate { min: 0, max: declaration.size_max() })
}
