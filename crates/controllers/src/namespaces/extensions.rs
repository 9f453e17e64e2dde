//! Deletion of a namespace's content at extension API servers.

use pintle_meta::{Status, User, object};
use pintle_value::Value;

use super::{Left, deletion};
use crate::Environment;
use crate::extensions::{ExtensionRequest, ExtensionResource, ExtensionServers};

/// Deletes everything that extension API servers store in a namespace. The namespace waits for a
/// server that does not answer, because its content there is unknown.
pub(super) async fn remove(environment: &Environment, namespace: &str, left: &mut Left) {
    let served = environment.extensions.served();
    left.silent = served.silent;
    let user = environment.account(super::USER);
    let is_deletable = |resource: &&ExtensionResource| {
        resource.is_preferred && resource.namespaced && resource.has("delete")
    };
    for resource in served.resources.iter().filter(is_deletable) {
        let content =
            Content { servers: &*environment.extensions, user: &user, resource, namespace };
        if let Err(status) = content.remove(left).await {
            left.failures.push(status.message);
        }
    }
}

/// The objects of a resource in a namespace.
struct Content<'a> {
    servers: &'a dyn ExtensionServers,
    user: &'a User,
    resource: &'a ExtensionResource,
    namespace: &'a str,
}

impl Content<'_> {
    async fn remove(&self, left: &mut Left) -> Result<(), Status> {
        let options = deletion();
        let namespace = self.namespace;
        if self.resource.has("deletecollection") {
            let all = ExtensionRequest::DeleteCollection { namespace, options: &options };
            self.ask(all).await?;
        } else if let Some(page) = self.list().await? {
            for object in items(&page) {
                let name = object::name(object);
                let one = ExtensionRequest::Delete { namespace, name, options: &options };
                match self.ask(one).await {
                    Err(status) if status.code != 404 => return Err(status),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        let Some(page) = self.list().await? else { return Ok(()) };
        items(&page).iter().for_each(|object| left.count_finalizers(object));
        let beyond = page.at(&["metadata", "remainingItemCount"]).and_then(Value::as_int);
        let beyond = beyond.and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
        let count = items(&page).len().saturating_add(beyond);
        if count > 0 {
            let of = &self.resource.resource;
            left.objects.insert(format!("{}.{}", of.resource, of.group), count);
        }
        Ok(())
    }

    /// Returns the first page of the remaining objects, which is enough, because there is another
    /// attempt; `None` if the resource cannot be listed.
    async fn list(&self) -> Result<Option<Value>, Status> {
        if !self.resource.has("list") {
            return Ok(None);
        }
        let first = ExtensionRequest::List { namespace: self.namespace, continue_token: "" };
        self.ask(first).await.map(Some)
    }

    async fn ask(&self, request: ExtensionRequest<'_>) -> Result<Value, Status> {
        self.servers.ask(self.user, self.resource, request).await
    }
}

fn items(page: &Value) -> &[Value] {
    page.get("items").and_then(Value::as_array).unwrap_or_default()
}
