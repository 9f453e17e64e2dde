//! The webhooks of all configurations of a kind, and those of them that match a write.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::admission::Attributes;
use pintle_registry::{Feed, FeedUpdate, Registry, Resource};

use super::webhook::Webhook;

const GROUP: &str = "admissionregistration.k8s.io";

/// The current webhooks of all configurations of a kind.
pub(super) struct Configurations {
    resource: &'static str,
    /// Follows the configurations; `None` until they have been read.
    known: Mutex<Option<(Feed, All)>>,
}

/// All webhooks of a kind, in the order in which they are called.
type All = Arc<[Arc<Webhook>]>;

/// A webhook that matches a write, with the version of the resource that it matches.
pub(super) struct MatchedWebhook {
    pub(super) webhook: Arc<Webhook>,
    /// Its index among all webhooks of the kind.
    pub(super) index: usize,
    pub(super) resource: Arc<Resource>,
}

impl Configurations {
    /// Returns the webhooks of a resource; its objects are read at the first write.
    pub(super) fn new(resource: &'static str) -> Self {
        Self { resource, known: Mutex::default() }
    }

    /// Returns the webhooks that match a write, ordered by the names of their configurations.
    pub(super) fn matched(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<MatchedWebhook>, Status> {
        if is_exempt(write.resource) {
            return Ok(Vec::new());
        }
        let webhooks = self.configured(registry)?;
        if webhooks.is_empty() {
            return Ok(Vec::new());
        }
        let versions = registry.versions_of(write.resource);
        let mut matched = Vec::new();
        for (index, webhook) in webhooks.iter().enumerate() {
            let resource = webhook.matching.version(write, registry, &versions)?;
            let webhook = || Arc::clone(webhook);
            matched.extend(resource.map(|resource| MatchedWebhook {
                webhook: webhook(),
                index,
                resource,
            }));
        }
        Ok(matched)
    }

    fn configured(&self, registry: &Registry) -> Result<All, Status> {
        let mut known = self.known.lock();
        if let Some((feed, webhooks)) = &*known
            && feed.is_current()
        {
            return Ok(webhooks.clone());
        }
        let name = GroupVersionResource::new(GROUP, "v1", self.resource);
        let Some(resource) = registry.resource(&name) else { return Ok(Arc::from([])) };
        let mut feed = registry.feed(&resource);
        let FeedUpdate::State(objects) = feed.take()? else {
            return Err(Status::internal("the first update of a feed is not a state"));
        };
        // Configurations come in the order of their names, in which their webhooks are called.
        let mut webhooks = Vec::new();
        for object in &objects {
            // Writes are refused while a configuration cannot be read: its webhooks might refuse
            // them.
            let unreadable = |why| Status::internal(format_args!("{}: {why}", self.resource));
            let all = Webhook::all(&object.tree().map_err(unreadable)?);
            webhooks.extend(all.into_iter().map(Arc::new));
        }
        let webhooks: All = webhooks.into();
        *known = Some((feed, webhooks.clone()));
        Ok(webhooks)
    }
}

/// Writes of webhooks and policies themselves are exempt (WH-04).
fn is_exempt(resource: &Resource) -> bool {
    resource.resource.group == GROUP
}
