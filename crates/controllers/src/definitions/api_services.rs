//! Each group version of custom resources has an APIService (upstream: `crdregistration` and
//! `autoregister`). Those that someone else put there are left alone.

use std::sync::Arc;

use pintle_kinds::bootstrap::{AUTOMANAGED, custom_api_service};
use pintle_meta::{Status, object};
use pintle_registry::Resource;
use pintle_registry::answer::Event;
use pintle_registry::request::{DeleteOptions, WriteOptions, granted};
use pintle_value::Str;

use super::{Definitions, Due, Progress};
use crate::{SERVER, body, target};

impl Definitions {
    pub(super) fn api_services(&self) -> Option<Arc<Resource>> {
        self.environment.resource("apiregistration.k8s.io", "v1", "apiservices")
    }

    /// Has the API services of all definitions looked at.
    pub(super) fn expect_api_services(&mut self) {
        for known in self.known.values() {
            for version in &known.versions {
                self.queue.add(&Due::ApiService(name(&known.group, version)));
            }
        }
    }

    /// Has those of some group versions looked at.
    pub(super) fn expect_api_services_of(&mut self, group: &str, versions: &[Str]) {
        for version in versions {
            self.queue.add(&Due::ApiService(name(group, version)));
        }
    }

    /// Takes in what the watch of API services tells; `false` where it is over.
    pub(super) fn note_api_services(&mut self, events: Vec<Event>) -> bool {
        for event in events {
            match event {
                Event::Added(one) | Event::Modified(one) | Event::Deleted(one) => {
                    let (version, group) = split(one.name());
                    if custom_api_service(group, version).is_some() {
                        self.queue.add(&Due::ApiService(one.name().into()));
                    }
                }
                Event::Bookmark { .. } => {}
                Event::Error(_) => return false,
            }
        }
        true
    }

    /// Makes an API service what it should be, if it is ours.
    pub(super) async fn register(&self, name: &str) -> Result<Progress, Status> {
        let Some(services) = self.api_services() else { return Ok(Progress::Done) };
        let (version, group) = split(name);
        let Some(wanted) = custom_api_service(group, version) else { return Ok(Progress::Done) };
        let is_wanted = self.known.values().any(|known| {
            known.group == group && known.versions.iter().any(|served| served == version)
        });
        let registry = &self.environment.registry;
        let context = self.environment.context(SERVER);
        let one = target(&services, "", name, "");
        let Some(stored) = registry.peek(&services, "", name) else {
            if is_wanted {
                let all = target(&services, "", "", "");
                let options = WriteOptions::default();
                registry.create(&all, &body(&wanted), &options, &context).await?;
            }
            return Ok(Progress::Done);
        };
        let mut stored = services.tree(&stored);
        if stored.str_at(&["metadata", "labels", AUTOMANAGED]) != Some("true") {
            return Ok(Progress::Done);
        }
        if !is_wanted {
            let uid = Some(object::uid(&stored).into());
            let options = DeleteOptions { uid, ..DeleteOptions::default() };
            registry.delete(&one, &options, &context).await?;
        } else if stored.get("spec") != wanted.get("spec") {
            let spec = wanted.get("spec").cloned().unwrap_or_default();
            stored.make_object().insert("spec", spec);
            let options = WriteOptions::default();
            registry.update(&one, &body(&stored), &options, &context, &granted).await?;
        }
        Ok(Progress::Done)
    }
}

fn name(group: &str, version: &str) -> Str {
    format!("{version}.{group}").into()
}

/// The version and the group in an API service's name.
fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, ""))
}
