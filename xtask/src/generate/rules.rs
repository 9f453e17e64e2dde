//! Markers in Go comments that declare rules for a value: `+k8s:minimum=0` and others, `+enum`.

use super::sources::{Member, Sources};

/// A rule that a marker declares.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rule {
    Enum(Vec<String>),
    Number(&'static str, i64),
    Format(String),
    Immutable,
}

/// The rules of one member. A rule that holds only under a feature gate, for part of the value, or
/// for one member of a union is not declared for the value, and is code in `pintle-kinds`.
pub(crate) fn of(sources: &Sources, package: &str, member: &Member) -> Vec<Rule> {
    let mut rules: Vec<Rule> = enum_values(sources, package, &member.go).into_iter().collect();
    for marker in &member.tags {
        // Upstream's handwritten validation already enforces a rule that is alpha or beta, so such
        // a rule counts like any other.
        let staged = marker.strip_prefix("k8s:alpha(").or(marker.strip_prefix("k8s:beta("));
        let marker = match staged {
            Some(staged) => staged.split_once(")=+").map_or("", |(_, rule)| rule),
            None => marker,
        };
        rules.extend(rule(marker).filter(|r| !rules.contains(r)));
    }
    rules
}

fn rule(marker: &str) -> Option<Rule> {
    let (name, value) = match marker.strip_prefix("k8s:")?.split_once('=') {
        Some((name, value)) => (name, value.split('#').next().unwrap_or("").trim()),
        None => (marker.strip_prefix("k8s:")?, ""),
    };
    let number = |name| Some(Rule::Number(name, value.parse().ok()?));
    match name {
        "minimum" => number("Minimum"),
        "maximum" => number("Maximum"),
        "minLength" => number("MinLength"),
        "maxLength" => number("MaxLength"),
        "maxBytes" => number("MaxBytes"),
        "maxItems" => number("MaxItems"),
        "format" => Some(Rule::Format(value.trim_matches('"').to_owned())),
        "immutable" => Some(Rule::Immutable),
        _ => None,
    }
}

/// The values of a type that upstream marks `+enum`; for a list, of its items.
fn enum_values(sources: &Sources, package: &str, go: &str) -> Option<Rule> {
    let bare = go.trim_start_matches(['*', '[', ']']);
    let (packages, name) = match bare.split_once('.') {
        None => (vec![package.to_owned()], bare),
        // Sources do not record the names of imports; the API imports these by such names.
        Some((alias, name)) if alias.starts_with("meta") => {
            (vec!["k8s.io/apimachinery/pkg/apis/meta/v1".to_owned()], name)
        }
        Some((_, name)) => {
            let stable = package.rsplit_once('/').map(|(group, _)| format!("{group}/v1"));
            (std::iter::once("k8s.io/api/core/v1".to_owned()).chain(stable).collect(), name)
        }
    };
    let values = packages.iter().find_map(|p| sources.packages.get(p)?.enums.get(name))?;
    let mut values = values.clone();
    let borrowed =
        FOREIGN_VALUES.iter().filter(|(of, _)| *of == name).flat_map(|(_, values)| *values);
    values.extend(borrowed.map(|value| (*value).to_owned()));
    values.sort();
    values.dedup();
    Some(Rule::Enum(values))
}

/// Values of enums that are constants of another package, which the sources do not resolve.
const FOREIGN_VALUES: &[(&str, &[&str])] = &[("AddressType", &["IPv4", "IPv6"])];
