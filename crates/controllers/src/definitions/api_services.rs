//! The APIServices of custom resources, one for each group version (upstream: `crdregistration` and
//! `autoregister`). APIServices that others created are not changed.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_kinds::bootstrap::{AUTOMANAGED, custom_api_service};
use pintle_meta::{Status, object};
use pintle_registry::Resource;
use pintle_registry::request::{DeleteOptions, WriteOptions, granted};
use pintle_registry::results::{Event, Outcome as ResponseBody};
use pintle_value::Str;

use super::{Definitions, Due, Outcome, Progress};
use crate::{SERVER, body, target};

impl Definitions {
    pub(super) fn api_services(&self) -> Option<Arc<Resource>> {
        self.environment.resource("apiregistration.k8s.io", "v1", "apiservices")
    }

    /// Enqueues the API services of all definitions.
    pub(super) fn enqueue_api_services(&mut self) {
        for known in self.known.values() {
            for version in &known.versions {
                self.queue.enqueue(&Due::ApiService(name(&known.group, version)), Duration::ZERO);
            }
        }
    }

    /// Enqueues the API services of some versions of a group.
    pub(super) fn enqueue_api_services_of(&mut self, group: &str, versions: &[Str]) {
        for version in versions {
            self.enqueue(&Due::ApiService(name(group, version)));
        }
    }

    /// Handles events of the watch of API services; `false` if the watch ended.
    pub(super) fn observe_api_services(&mut self, events: Vec<Event>) -> bool {
        for event in events {
            match event {
                Event::Added(one) | Event::Modified(one) | Event::Deleted(one) => {
                    let (version, group) = split(one.name());
                    if custom_api_service(group, version).is_some() {
                        self.enqueue(&Due::ApiService(one.name().into()));
                    }
                }
                Event::Bookmark { .. } => {}
                Event::Error(_) => return false,
            }
        }
        true
    }

    /// Returns the write that creates, updates or deletes an API service; `None` if no write is
    /// needed, or the API service is not managed by this controller.
    pub(super) fn register(&self, name: &str) -> Option<BoxFuture<'static, Outcome>> {
        let services = self.api_services()?;
        let (version, group) = split(name);
        let wanted = custom_api_service(group, version)?;
        let is_wanted = self.known.values().any(|known| {
            known.group == group && known.versions.iter().any(|served| served == version)
        });
        let registry = self.environment.registry.clone();
        let context = self.environment.context(SERVER);
        let Some(stored) = registry.peek(&services, "", name) else {
            let all = target(&services, "", "", "");
            return is_wanted.then(|| {
                written(async move {
                    let options = WriteOptions::default();
                    registry.create(&all, &body(&wanted), &options, &context).await
                })
            });
        };
        let mut stored = match services.tree(&stored) {
            Ok(stored) => stored,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        if stored.str_at(&["metadata", "labels", AUTOMANAGED]) != Some("true") {
            return None;
        }
        let one = target(&services, "", name, "");
        if !is_wanted {
            let uid = Some(object::uid(&stored).into());
            return Some(written(async move {
                let options = DeleteOptions { uid, ..DeleteOptions::default() };
                registry.delete(&one, &options, &context).await
            }));
        }
        if stored.get("spec") == wanted.get("spec") {
            return None;
        }
        let spec = wanted.get("spec").cloned().unwrap_or_default();
        stored.make_object().insert("spec", spec);
        Some(written(async move {
            let options = WriteOptions::default();
            registry.update(&one, &body(&stored), &options, &context, &granted).await
        }))
    }
}

fn written(
    write: impl Future<Output = Result<ResponseBody, Status>> + Send + 'static,
) -> BoxFuture<'static, Outcome> {
    Box::pin(async move { write.await.map(|_| Progress::Done) })
}

fn name(group: &str, version: &str) -> Str {
    format!("{version}.{group}").into()
}

/// Splits an API service's name into version and group.
fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, ""))
}
