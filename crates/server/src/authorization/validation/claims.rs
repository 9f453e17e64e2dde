//! Changes of a ResourceClaim's status need permissions besides that of the status: on
//! `resourceclaims/binding` for `allocation` and `reservedFor`, and on `resourceclaims/driver` for
//! the devices of each driver (upstream: `registry/resource`, gate
//! `DRAResourceClaimGranularStatusAuthorization`).

use std::collections::{BTreeMap, BTreeSet};

use pintle_auth::{Authorizer, Objects, Subject};
use pintle_meta::field::Error;
use pintle_meta::names;
use pintle_registry::admission::Attributes;
use pintle_value::{Path, Value};

use crate::authentication::impersonation::own_node;

pub(super) const GROUP: &str = "resource.k8s.io";
const RESOURCE: &str = "resourceclaims";
const ALLOCATION: &[&str] = &["status", "allocation"];

/// A change of a claim's status, and the verb of its request.
pub(super) struct Change<'a> {
    write: &'a Attributes<'a>,
    new: &'a Value,
    old: &'a Value,
    verb: &'static str,
}

impl<'a> Change<'a> {
    /// The change, if a request makes it; the server's own writes need no permission.
    pub(super) fn of(write: &'a Attributes<'a>) -> Option<Self> {
        let verb = write.verb?.as_str();
        Some(Self { write, new: write.object?, old: write.old()?, verb })
    }

    /// The errors of its parts that the writer has no permission for.
    pub(super) async fn errors(&self, authorizer: &dyn Authorizer) -> Vec<Error> {
        let mut errors = Vec::new();
        let is_same = |path: &[&str]| present(self.new, path) == present(self.old, path);
        if !is_same(ALLOCATION) || !is_same(&["status", "reservedFor"]) {
            let asked = Objects { subresource: "binding", ..self.objects() };
            if let Err(why) = self.ask(authorizer, self.verb, asked).await {
                let why = format!(
                    "changing status.allocation or status.reservedFor requires \
                     resource=\"resourceclaims/binding\", verb=\"{}\" permission: {why}",
                    self.verb
                );
                errors.push(Error::forbidden(&Path::new("status").field("allocation"), why));
            }
        }
        // Without an allocation there are no devices.
        if present(self.new, ALLOCATION).is_none() {
            return errors;
        }
        let verbs = self.driver_verbs();
        for driver in changed_drivers(self.new, self.old) {
            if let Err(why) = self.ask_for_driver(authorizer, &verbs, driver).await {
                let why = format!(
                    "changing status.devices requires resource=\"resourceclaims/driver\", \
                     verb=\"[{}]\" permission: {why}",
                    verbs.join(" ")
                );
                errors.push(Error::forbidden(&Path::new("status").field("devices"), why));
            }
        }
        errors
    }

    /// The verbs of which the writer needs one: `arbitrary-node:…`, and also `associated-node:…`
    /// for a service account on the claim's node.
    fn driver_verbs(&self) -> Vec<String> {
        let own =
            own_node(self.write.user).filter(|node| names::dns1123_subdomain(node).is_empty());
        let is_associated = own.is_some() && own == allocated_node(self.new);
        let prefixes = ["associated-node:", "arbitrary-node:"];
        let first = usize::from(!is_associated);
        prefixes[first..].iter().map(|prefix| format!("{prefix}{}", self.verb)).collect()
    }

    async fn ask_for_driver(
        &self,
        authorizer: &dyn Authorizer,
        verbs: &[String],
        driver: &str,
    ) -> Result<(), String> {
        let namespace = self.write.namespace;
        let mut refusal = None;
        for verb in verbs {
            let asked =
                Objects { subresource: "driver", namespace, name: driver, ..self.objects() };
            match self.ask(authorizer, verb, asked).await {
                Ok(()) => return Ok(()),
                Err(why) => refusal = refusal.or(Some(why)),
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    fn objects(&self) -> Objects<'a> {
        let version = self.write.resource.resource.version.as_str();
        Objects { group: GROUP, version, resource: RESOURCE, ..Objects::default() }
    }

    async fn ask(
        &self,
        authorizer: &dyn Authorizer,
        verb: &str,
        objects: Objects<'_>,
    ) -> Result<(), String> {
        let subject = Subject::Resource(objects);
        let asked = pintle_auth::Attributes { user: self.write.user, verb, subject };
        let ruling = authorizer.authorize(&asked).await;
        if ruling.allowed() { Ok(()) } else { Err(asked.forbidden(&ruling.reason).message) }
    }
}

/// The value at a path; an empty list is none.
fn present<'v>(claim: &'v Value, path: &[&str]) -> Option<&'v Value> {
    claim.at(path).filter(|value| value.as_array().is_none_or(|items| !items.is_empty()))
}

/// The node of an allocation that is for one node only.
fn allocated_node(claim: &Value) -> Option<&str> {
    let selector = claim.at(&["status", "allocation", "nodeSelector"])?;
    let [term] = selector.get("nodeSelectorTerms")?.as_array()? else { return None };
    let [field] = term.get("matchFields")?.as_array()? else { return None };
    let expressions = term.get("matchExpressions").and_then(Value::as_array);
    let is_of_names = field.str_at(&["key"]) == Some("metadata.name")
        && field.str_at(&["operator"]) == Some("In")
        && expressions.is_none_or(<[Value]>::is_empty);
    match field.get("values")?.as_array()? {
        [node] if is_of_names => node.as_str(),
        _ => None,
    }
}

/// The drivers of devices whose status was added, removed or changed.
fn changed_drivers<'v>(new: &'v Value, old: &'v Value) -> BTreeSet<&'v str> {
    fn devices(claim: &Value) -> BTreeMap<[&str; 4], &Value> {
        fn key(device: &Value) -> [&str; 4] {
            ["driver", "pool", "device", "shareID"]
                .map(|member| device.str_at(&[member]).unwrap_or_default())
        }
        let devices = claim.at(&["status", "devices"]).and_then(Value::as_array);
        devices.unwrap_or_default().iter().map(|device| (key(device), device)).collect()
    }
    let (new, old) = (devices(new), devices(old));
    let differs = |key: &&[&str; 4]| new.get(*key) != old.get(*key);
    new.keys().chain(old.keys()).filter(differs).map(|[driver, ..]| *driver).collect()
}
