//! The rules for LimitRanges: the limited resources, and the consistency of their limits.

use std::{cmp::Ordering, collections::BTreeSet};

use pintle_meta::{
    field::Error,
    names,
    quantity::{Format, Quantity},
};
use pintle_value::Value;

use crate::{
    amounts::{any_name, compare, container_name, is_shareable, parse},
    field::{Errors, Field},
};

const TYPES: &[&str] = &["Pod", "Container", "PersistentVolumeClaim"];

/// Validates a limit range.
pub(super) fn validate(range: &Value) -> Errors {
    let mut errors = Errors::new();
    let range = Field::root(range);
    let mut seen = BTreeSet::new();
    let spec = range.get("spec");
    for limit in spec.items("limits") {
        let kind = limit.get("type");
        let wrong = names::qualified_name(kind.text());
        if wrong.is_empty() && !kind.text().contains('/') && !TYPES.contains(&kind.text()) {
            errors.push(kind.invalid("must be a standard limit type or fully qualified"));
        }
        kind.all_invalid(wrong, &mut errors);
        if !seen.insert(kind.text().to_owned()) {
            errors.push(kind.duplicate());
        }
        check_names(&limit, &mut errors);
        check_amounts(&limit, &mut errors);
    }
    errors
}

/// The lists of limits.
const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

fn check_names(limit: &Field<'_>, errors: &mut Errors) {
    let kind = limit.str("type");
    for member in LISTS {
        let list = limit.get(member);
        if kind == "Pod" && member.starts_with("default") {
            if !list.is_empty() {
                errors.push(list.forbidden("may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        if kind == "PersistentVolumeClaim" && member == "maxLimitRequestRatio" {
            let has = |member: &str| limit.map(member).contains_key("storage");
            if !has("min") && !has("max") {
                let words =
                    "either minimum or maximum storage value is required, but neither was provided";
                errors.push(limit.get("limits").required(words));
            }
        }
        for (name, field) in list.pairs() {
            if matches!(kind, "Pod" | "Container") {
                container_name(&field, name, errors);
            } else {
                any_name(&field, name, errors);
            }
        }
    }
}

/// The limits of one resource, each with its path.
struct Limits<'a> {
    name: &'a str,
    lists: &'a [Field<'a>; 5],
}

impl<'a> Limits<'a> {
    fn at(&self, member: &str) -> Field<'_> {
        let i = LISTS.iter().position(|list| *list == member).unwrap_or(0);
        self.lists[i].entry(self.name)
    }

    /// An error of `member` that shows the value of the member `shown`, as upstream does.
    fn wrong(&self, member: &str, shown: &str, words: String) -> Error {
        self.at(member).invalid_as(self.at(shown).text(), words)
    }

    /// Returns an error if the limit `low` is above the limit `high`; each has its member and its
    /// name in the message. As in upstream, the error has the path of `blamed` and the value of
    /// `shown`.
    fn order(&self, low: [&str; 2], high: [&str; 2], [blamed, shown]: [&str; 2]) -> Option<Error> {
        let (a, b) = (self.at(low[0]), self.at(high[0]));
        (compare(&a, &b) == Some(Ordering::Greater)).then(|| {
            let words = format!(
                "{} value {} is greater than {} value {}",
                low[1],
                a.text(),
                high[1],
                b.text()
            );
            self.wrong(blamed, shown, words)
        })
    }
}

fn check_amounts(limit: &Field<'_>, errors: &mut Errors) {
    let none = Value::Null;
    let is_ignored = |member: &str| limit.str("type") == "Pod" && member.starts_with("default");
    let lists = LISTS.map(|member| limit.get(member));
    let effective: [Field<'_>; 5] =
        std::array::from_fn(|i| if is_ignored(LISTS[i]) { lists[i].of(&none) } else { lists[i] });
    let names: BTreeSet<&str> =
        effective.iter().flat_map(|list| list.pairs().map(|(name, _)| name)).collect();
    for name in names {
        check_limits(&Limits { name, lists: &effective }, errors);
    }
}

fn check_limits(limits: &Limits<'_>, errors: &mut Errors) {
    let (min, max) = (["min", "min"], ["max", "max"]);
    let (default, limit) = (["default", "default"], ["default", "default limit"]);
    let request = ["defaultRequest", "default request"];
    errors.extend(limits.order(min, max, ["min", "min"]));
    errors.extend(limits.order(min, request, ["defaultRequest", "defaultRequest"]));
    errors.extend(limits.order(request, max, ["defaultRequest", "defaultRequest"]));
    errors.extend(limits.order(request, limit, ["defaultRequest", "defaultRequest"]));
    errors.extend(limits.order(min, default, ["default", "min"]));
    errors.extend(limits.order(default, max, ["default", "max"]));
    check_ratio(limits, errors);
    let (default, default_request) = (limits.at("default"), limits.at("defaultRequest"));
    let differ = compare(&default, &default_request).is_some_and(Ordering::is_ne);
    if differ && !is_shareable(limits.name) {
        let words = format!(
            "default value {} must equal to defaultRequest value {} in {}",
            default.text(),
            default_request.text(),
            limits.name
        );
        errors.push(limits.wrong("defaultRequest", "defaultRequest", words));
    }
}

/// Checks that the ratio of limit to request is at least 1, and at most the maximum divided by the
/// minimum.
fn check_ratio(limits: &Limits<'_>, errors: &mut Errors) {
    let field = limits.at("maxLimitRequestRatio");
    let Some(ratio) = parse(&field) else { return };
    if ratio < Quantity::from_int(1, Format::DecimalSi) {
        errors.push(field.invalid(format!("ratio {} is less than 1", field.text())));
    }
    let Some((least, most)) = parse(&limits.at("min")).zip(parse(&limits.at("max"))) else {
        return;
    };
    #[expect(clippy::cast_precision_loss, reason = "upstream compares floating point numbers")]
    let bound = most.milli_value() as f64 / least.milli_value() as f64;
    #[expect(clippy::cast_precision_loss, reason = "upstream compares floating point numbers")]
    let value = ratio.milli_value() as f64 / 1000.0;
    if value > bound {
        let words = format!("ratio {} is greater than max/min = {bound:.6}", field.text());
        errors.push(field.invalid(words));
    }
}
