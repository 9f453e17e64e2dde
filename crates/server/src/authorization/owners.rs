//! The admission plugin OwnerReferencesPermissionEnforcement. A change of owners needs the
//! permission to delete the object, because owners decide when their dependents are deleted.
//! Setting blockOwnerDeletion needs the permission to update the owner's finalizers, because
//! blockOwnerDeletion delays the owner's deletion.

use std::collections::HashSet;
use std::sync::Arc;

use pintle_admission::forbidden;
use pintle_auth::{Attributes, Authorizer, Objects, Subject};
use pintle_meta::{GroupVersion, Status};
use pintle_registry::admission::{self, Admission, Hook, Hooks, Operation, Waited};
use pintle_registry::{Registry, Resource};
use pintle_value::Value;

/// The plugin.
pub(crate) struct Owners {
    authorizer: Arc<dyn Authorizer>,
}

impl Owners {
    pub(crate) fn new(authorizer: &Arc<dyn Authorizer>) -> Self {
        Self { authorizer: authorizer.clone() }
    }
}

impl Admission for Owners {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::ValidateRegistered])
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a admission::Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let new = write.object.filter(|_| write.operation != Operation::Delete)?;
        let of = &write.resource.resource;
        // A write of a pod's status does not change its owners, and old kubelets send wrong ones.
        let is_pod_status =
            of.group.is_empty() && of.resource == "pods" && write.subresource == "status";
        let (owners, before) = (owners(new), write.old().map(owners).unwrap_or_default());
        if is_pod_status || owners == before {
            return None;
        }
        Some(Box::pin(self.check(write, registry, (owners, before))))
    }
}

impl Owners {
    /// Authorizes a change of owners.
    async fn check(
        &self,
        write: &admission::Attributes<'_>,
        registry: &Registry,
        (owners, before): (&[Value], &[Value]),
    ) -> Result<(), Status> {
        let of = &write.resource.resource;
        // A creator needs no permission to delete the object.
        if write.operation != Operation::Create {
            let subject = Subject::Resource(Objects {
                group: &of.group,
                resource: &of.resource,
                subresource: write.subresource,
                namespace: write.namespace,
                name: write.name,
                version: &of.version,
                ..Objects::default()
            });
            let why = "cannot set an ownerRef on a resource you can't delete";
            self.ask(write, "delete", subject, why).await?;
        }
        // The owners whose deletion the old object blocked, too.
        let blocked: HashSet<&str> = before.iter().filter(|owner| blocks(owner)).map(uid).collect();
        let is_new = |owner: &&Value| blocks(owner) && !blocked.contains(uid(owner));
        let mut blocking = owners.iter().filter(is_new).peekable();
        if blocking.peek().is_some() && !self.may_block_anything(write).await {
            for owner in blocking {
                self.may_block(write, owner, registry).await?;
            }
        }
        Ok(())
    }

    /// Whether the writer may set finalizers of all resources, so that the owners' kinds need not
    /// be resolved.
    async fn may_block_anything(&self, write: &admission::Attributes<'_>) -> bool {
        let subject = Subject::Resource(Objects {
            group: "*",
            resource: "*",
            subresource: "finalizers",
            name: "*",
            version: "*",
            ..Objects::default()
        });
        let asked = Attributes { user: write.user, verb: "update", subject };
        self.authorizer.authorize(&asked).await.allowed()
    }

    /// Blocking an owner's deletion needs the permission to update its finalizers.
    async fn may_block(
        &self,
        write: &admission::Attributes<'_>,
        owner: &Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        let text = |member: &str| owner.str_at(&[member]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let version = GroupVersion::parse(api_version);
        let (_, resources) = registry.resources();
        let is_of = |resource: &Resource| {
            let kind_of = resource.gvk();
            version.as_ref() == Some(&kind_of.group_version()) && kind_of.kind == kind
        };
        let found: Vec<_> = resources.iter().filter(|resource| is_of(resource)).collect();
        if found.is_empty() {
            let why = format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for \
                 APIVersion {api_version} Kind {kind}: no matches for kind \"{kind}\" in version \
                 \"{api_version}\""
            );
            return Err(forbidden(write, write.object.unwrap_or(&Value::Null), &why));
        }
        for resource in found {
            let subject = Subject::Resource(Objects {
                group: &resource.resource.group,
                resource: &resource.resource.resource,
                subresource: "finalizers",
                namespace: if resource.namespaced() { write.namespace } else { "" },
                name: text("name"),
                version: &resource.resource.version,
                ..Objects::default()
            });
            let why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you \
                       can't set finalizers on";
            self.ask(write, "update", subject, why).await?;
        }
        Ok(())
    }

    async fn ask(
        &self,
        write: &admission::Attributes<'_>,
        verb: &str,
        subject: Subject<'_>,
        why: &str,
    ) -> Result<(), Status> {
        let asked = Attributes { user: write.user, verb, subject };
        let ruling = self.authorizer.authorize(&asked).await;
        if ruling.allowed() {
            return Ok(());
        }
        // Upstream prints `<nil>` for a missing error.
        Err(forbidden(
            write,
            write.object.unwrap_or(&Value::Null),
            &format!("{why}: {}, <nil>", ruling.reason),
        ))
    }
}

fn owners(object: &Value) -> &[Value] {
    object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default()
}

fn blocks(owner: &Value) -> bool {
    owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
}

fn uid(owner: &Value) -> &str {
    owner.str_at(&["uid"]).unwrap_or_default()
}
