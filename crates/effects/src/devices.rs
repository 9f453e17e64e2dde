//! Administrative access to devices, even to those that other claims use. Claims get this access
//! only in namespaces that permit it (upstream: `AuthorizedForAdmin`, `AuthorizedForAdminStatus`).

use pintle_meta::field::Error;
use pintle_meta::{GroupKind, Status, object};
use pintle_registry::Registry;
use pintle_registry::allocation::{Allocator, Companion};
use pintle_registry::request::Now;
use pintle_value::{Path, Value};

use crate::pods;

/// The label of namespaces that permit administrative access.
const LABEL: &str = "resource.kubernetes.io/admin-access";

/// Refuses claims with administrative access in a namespace that does not permit it.
pub(crate) struct Devices {
    /// The kind: a claim or a template of claims.
    pub(crate) kind: &'static str,
    /// The path of the requests.
    pub(crate) requests: &'static [&'static str],
}

impl Allocator for Devices {
    fn assign(
        &self,
        registry: &Registry,
        new: &mut Value,
        old: Option<&Value>,
        _dry_run: bool,
    ) -> Result<(), Status> {
        // Requests are immutable, so only those of a new object are checked.
        match first_privileged(new, self.requests, &["exactly", "adminAccess"]) {
            Some(i) if old.is_none() => {
                let path = Path::new("spec").field("devices").field("requests");
                self.check(registry, new, &path.index(i).field("adminAccess"))
            }
            _ => Ok(()),
        }
    }

    fn companions(
        &self,
        registry: &Registry,
        old: Option<&Value>,
        new: Option<&Value>,
        _now: Now,
    ) -> Result<Vec<Companion>, Status> {
        const RESULTS: &[&str] = &["status", "allocation", "devices", "results"];
        let granted = |claim: &Value| first_privileged(claim, RESULTS, &["adminAccess"]);
        if let Some(new) = new
            && let Some(i) = granted(new)
            && old.and_then(granted).is_none()
        {
            let path = Path::new("status").field("allocation").field("devices").field("results");
            self.check(registry, new, &path.index(i).field("adminAccess"))?;
        }
        Ok(Vec::new())
    }
}

impl Devices {
    /// Checks that the namespace of an object permits the access that the object has at a path.
    fn check(&self, registry: &Registry, object: &Value, path: &Path) -> Result<(), Status> {
        let namespaces = pods::resource(registry, "", "namespaces")?;
        let found = registry.peek(&namespaces, "", object::namespace(object));
        let namespace = found.map(|namespace| namespace.tree()).transpose()?;
        let label = namespace.as_ref().and_then(|it| it.str_at(&["metadata", "labels", LABEL]));
        if label == Some("true") {
            return Ok(());
        }
        let message = format!(
            "admin access to devices requires the `{LABEL}: true` label on the containing namespace"
        );
        let kind = GroupKind::new("resource.k8s.io", self.kind);
        let error = Error::forbidden(path, message);
        Err(Status::invalid(&kind, object::name(object), &[error]))
    }
}

/// The index of the first item of a list with `true` at `path`.
fn first_privileged(object: &Value, list: &[&str], path: &[&str]) -> Option<usize> {
    let items = object.at(list)?.as_array()?;
    items.iter().position(|item| item.at(path).and_then(Value::as_bool) == Some(true))
}
