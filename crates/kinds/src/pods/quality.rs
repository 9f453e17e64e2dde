//! A pod's quality of service, as it follows from its requests and limits.

use pintle_meta::quantity::Quantity;
use pintle_value::Value;

use crate::checks::{items, members};

/// The resources that determine the class.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// Sums of the counted resources; `None` where nothing above zero was added.
type Sums = [Option<Quantity>; COUNTED.len()];

/// The quality of service class of a pod.
pub(crate) fn quality(pod: &Value) -> &'static str {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    // If the pod as a whole has resources, even empty ones, those of its containers are ignored.
    let owners: Vec<&Value> = if spec.get("resources").is_some_and(|own| !own.is_null()) {
        vec![spec]
    } else {
        items(spec, &["containers"]).iter().chain(items(spec, &["initContainers"])).collect()
    };
    let (mut requests, mut limits) = (Sums::default(), Sums::default());
    let mut all_limited = true;
    for owner in owners {
        add(owner, "requests", &mut requests);
        let added = add(owner, "limits", &mut limits);
        all_limited &= added == COUNTED.len();
    }
    match (requests == Sums::default(), limits == Sums::default()) {
        (true, true) => "BestEffort",
        _ if all_limited && requests == limits => "Guaranteed",
        _ => "Burstable",
    }
}

/// Adds the counted resources of one owner. Returns how many of them are above zero.
fn add(owner: &Value, list: &str, sums: &mut Sums) -> usize {
    let mut added = 0;
    let amounts = members(owner, &["resources", list]);
    for (name, sum) in COUNTED.iter().zip(sums) {
        let Some(quantity) = parse(amounts.get(name)) else { continue };
        if quantity.signum() > 0 {
            added += 1;
            *sum = Some(sum.map_or(quantity, |before| before + quantity));
        }
    }
    added
}

fn parse(amount: Option<&Value>) -> Option<Quantity> {
    amount?.as_str()?.parse().ok()
}
