//! The violations of a LimitRange, with upstream's texts.
//!
//! Their number is a product, of the containers and of the names that the range limits. So only the
//! first ones are collected.

use std::collections::HashSet;

use pintle_meta::field::ERRORS_MAX;
use pintle_meta::quantity::Quantity;
use pintle_value::Value;

use super::Limit;
use super::group::PodResources;
use crate::pods::{Amounts, amounts};

/// The largest number of violations that are looked at, because many may have the same text.
const VIOLATIONS_MAX: usize = 100 * ERRORS_MAX;

/// The text in place of the violations beyond the limits.
const MORE: &str = "and more errors";

/// The first [`ERRORS_MAX`] different violations.
#[derive(Default)]
pub(super) struct Violations {
    texts: Vec<String>,
    known: HashSet<String>,
    count: usize,
    has_more: bool,
}

impl Violations {
    /// The violations of a range by a pod.
    pub(super) fn of_pod(pod: &PodResources<'_>, range: &[Limit]) -> Self {
        let mut found = Self::default();
        for limit in range {
            let group = match limit.of.as_str() {
                "Container" => pod.containers(),
                "Pod" => pod.whole(),
                _ => continue,
            };
            if group.fits(limit) {
                continue;
            }
            for [requests, limits] in &group.members {
                for violation in violations(limit, requests, limits) {
                    if !found.add(violation) {
                        return found;
                    }
                }
            }
        }
        found
    }

    /// The violations of a range by a claim. Only the requests of a claim are checked.
    pub(super) fn of_claim(claim: &Value, range: &[Limit]) -> Self {
        let requests = amounts(claim.at(&["spec", "resources", "requests"]));
        let mut found = Self::default();
        for limit in range.iter().filter(|limit| limit.of == "PersistentVolumeClaim") {
            let min = limit.min.iter().filter_map(|(name, min)| {
                let resource = RequestAndLimit { request: requests.get(name), limit: None };
                too_little(limit, name, min, resource)
            });
            let max = limit.max.iter().filter_map(|(name, max)| {
                let why = match requests.get(name) {
                    None => ".  No request is specified".to_owned(),
                    Some(request) if request > max => format!(", but request is {request}"),
                    Some(_) => return None,
                };
                Some(format!("maximum {name} usage per {} is {max}{why}", limit.of))
            });
            for violation in min.chain(max) {
                if !found.add(violation) {
                    return found;
                }
            }
        }
        found
    }

    /// Adds a violation. Returns false if no more are collected.
    fn add(&mut self, text: String) -> bool {
        self.count += 1;
        let is_new = !self.known.contains(&text);
        self.has_more = self.count > VIOLATIONS_MAX || is_new && self.texts.len() == ERRORS_MAX;
        if is_new && !self.has_more {
            self.known.insert(text.clone());
            self.texts.push(text);
        }
        !self.has_more
    }

    /// All violations as one text (upstream: `NewAggregate`); `None` if there are none.
    pub(super) fn text(mut self) -> Option<String> {
        if self.has_more {
            self.texts.push(MORE.to_owned());
        }
        match self.texts.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            all => Some(format!("[{}]", all.join(", "))),
        }
    }
}

/// The violations of a limit by one container, or by a pod.
fn violations<'a>(
    limit: &'a Limit,
    requests: &'a Amounts,
    limits: &'a Amounts,
) -> impl Iterator<Item = String> + 'a {
    let resource =
        |name: &String| RequestAndLimit { request: requests.get(name), limit: limits.get(name) };
    let min = limit.min.iter();
    let min = min.filter_map(move |(name, min)| too_little(limit, name, min, resource(name)));
    let max = limit.max.iter();
    let max = max.filter_map(move |(name, max)| too_much(limit, name, max, resource(name)));
    let ratio = limit.ratio.iter();
    let ratio =
        ratio.filter_map(move |(name, ratio)| too_uneven(limit, name, ratio, resource(name)));
    min.chain(max).chain(ratio)
}

/// The request and limit of one resource.
#[derive(Clone, Copy)]
struct RequestAndLimit<'a> {
    request: Option<&'a Quantity>,
    limit: Option<&'a Quantity>,
}

fn too_little(
    of: &Limit,
    name: &str,
    min: &Quantity,
    resource: RequestAndLimit<'_>,
) -> Option<String> {
    let why = match (resource.request, resource.limit) {
        (None, _) => ".  No request is specified".to_owned(),
        (Some(request), _) if request < min => format!(", but request is {request}"),
        (_, Some(limit)) if limit < min => format!(", but limit is {limit}"),
        _ => return None,
    };
    Some(format!("minimum {name} usage per {} is {min}{why}", of.of))
}

fn too_much(
    of: &Limit,
    name: &str,
    max: &Quantity,
    resource: RequestAndLimit<'_>,
) -> Option<String> {
    let why = match (resource.request, resource.limit) {
        (_, None) => ".  No limit is specified".to_owned(),
        (_, Some(limit)) if limit > max => format!(", but limit is {limit}"),
        (Some(request), _) if request > max => format!(", but request is {request}"),
        _ => return None,
    };
    Some(format!("maximum {name} usage per {} is {max}{why}", of.of))
}

fn too_uneven(
    of: &Limit,
    name: &str,
    max: &Quantity,
    resource: RequestAndLimit<'_>,
) -> Option<String> {
    let positive = |amount: Option<&Quantity>| amount.filter(|amount| !amount.is_zero()).copied();
    let why = match (positive(resource.request), positive(resource.limit)) {
        (None, _) => "no request is specified or request is 0".to_owned(),
        (_, None) => "no limit is specified or limit is 0".to_owned(),
        (Some(request), Some(limit)) => {
            let ratio = limit.to_f64() / request.to_f64();
            // The ratio of two amounts that are both too large for a float is no number.
            Some(ratio).filter(|ratio| *ratio > max.to_f64())?;
            format!("provided ratio is {ratio:.6}")
        }
    };
    Some(format!("{name} max limit to request ratio per {} is {max}, but {why}", of.of))
}
