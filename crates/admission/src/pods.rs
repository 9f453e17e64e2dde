//! What pods ask for: the amounts of all their containers together; and which writes change what a pod asks
//! of its node.

use std::collections::BTreeMap;

use pintle_meta::quantity::Quantity;
use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Attributes, Operation};
use pintle_value::{Map, Value};

use crate::{find, forbidden};

/// Amounts of resources by their names.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// The amounts that a map of quantities holds.
pub(crate) fn amounts(map: Option<&Value>) -> Amounts {
    let members = map.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    members.filter_map(|(name, amount)| Some((name.to_string(), read(amount)?))).collect()
}

/// A quantity, also one that stands there as a number.
pub(crate) fn read(amount: &Value) -> Option<Quantity> {
    match amount {
        Value::String(text) => text.parse().ok(),
        Value::Int(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// What is added to amounts.
pub(crate) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.get(name).unwrap_or(&Quantity::ZERO).checked_add(amount);
        to.insert(name.clone(), sum.unwrap_or(*amount));
    }
}

/// Makes amounts as large as others are.
pub(crate) fn grow(to: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let larger = to.get(name).is_none_or(|known| known < amount);
        if larger {
            to.insert(name.clone(), *amount);
        }
    }
}

/// The `requests` or `limits` of a pod: what its containers have together, or the largest of what has run
/// before them, beside what goes on running (upstream: `PodRequests`, `PodLimits`).
pub(crate) fn total(pod: &Value, member: &str) -> Amounts {
    let of = |container: &Value| amounts(container.at(&["resources", member]));
    let mut sum = Amounts::new();
    for container in items(pod, &["spec", "containers"]) {
        add(&mut sum, &of(container));
    }
    let (mut lasting, mut largest) = (Amounts::new(), Amounts::new());
    for container in items(pod, &["spec", "initContainers"]) {
        let own = of(container);
        let mut running = lasting.clone();
        add(&mut running, &own);
        if container.str_at(&["restartPolicy"]) == Some("Always") {
            add(&mut sum, &own);
            lasting.clone_from(&running);
        }
        grow(&mut largest, &running);
    }
    grow(&mut sum, &largest);
    // What is said of the pod as a whole takes the place of what its containers say.
    sum.extend(of_whole(pod, member));
    sum
}

/// The `requests` or `limits` that are said of a pod as a whole.
pub(crate) fn of_whole(pod: &Value, member: &str) -> Amounts {
    let mut whole = amounts(pod.at(&["spec", "resources", member]));
    whole.retain(|name, _| {
        matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-")
    });
    whole
}

/// The items of a list within an object; none where there is no list.
pub(crate) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// A pod on a node, whose specification a write changes.
pub(crate) struct Changed<'a> {
    write: &'a Attributes<'a>,
    pub(crate) new: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) node_name: &'a str,
}

impl<'a> Changed<'a> {
    /// What a write changes; `parts` are the subresources by which it may, `""` being the pod itself.
    pub(crate) fn by(write: &'a Attributes<'a>, parts: &[&str]) -> Option<Self> {
        let of = &write.resource.resource;
        let is_it = write.operation == Operation::Update
            && of.resource == "pods"
            && of.group.is_empty()
            && parts.contains(&write.subresource);
        let (new, old) = (write.object.filter(|_| is_it)?, write.old?);
        let node_name = new.str_at(&["spec", "nodeName"]).filter(|name| !name.is_empty())?;
        // The generation counts changes of the specification.
        (object::generation(new) != object::generation(old)).then_some(Self {
            write,
            new,
            old,
            node_name,
        })
    }

    /// The pod's node, which must be there.
    pub(crate) fn node(&self, registry: &Registry) -> Result<Value, Status> {
        let name = self.node_name;
        let found = find(registry, ("", "nodes"), "", name)?;
        found.ok_or_else(|| self.refusal(&format!("node {name:?} not found")))
    }

    /// Why the change may not be.
    pub(crate) fn refusal(&self, why: &str) -> Status {
        forbidden(self.write, self.new, why)
    }
}
