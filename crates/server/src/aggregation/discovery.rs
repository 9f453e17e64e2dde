//! The last discovery of extension API servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use parking_lot::RwLock;
use pintle_controllers::extensions::Discoverer;
use pintle_value::{Str, Value};
use tokio::sync::watch;

use super::documents::Documents;
use super::exchange::read;
use super::{Aggregation, ApiService};
use crate::discovery::{GroupList, ResourceList, VersionDiscovery};
use crate::header_text;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

const CURRENT: &str = "Current";

/// The discovery of each APIService by name.
#[derive(Default)]
pub(super) struct Discovered {
    state: RwLock<State>,
    /// Notifies of each change.
    changes: watch::Sender<u64>,
}

/// The discovery of one group version.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Discovery {
    pub(super) version: Arc<VersionDiscovery>,
    pub(super) documents: Documents,
}

impl Discovery {
    /// Whether the last discovery of the server succeeded.
    pub(super) fn is_current(&self) -> bool {
        self.version.freshness == CURRENT
    }
}

#[derive(Default)]
struct State {
    by_name: BTreeMap<Str, Arc<Discovery>>,
    /// The number of changes.
    number: u64,
}

impl Discovered {
    pub(super) fn number(&self) -> u64 {
        self.state.read().number
    }

    pub(super) fn of(&self, name: &str) -> Option<Arc<Discovery>> {
        self.state.read().by_name.get(name).cloned()
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn set(&self, name: &str, discovery: Option<Discovery>) {
        let mut state = self.state.write();
        if state.by_name.get(name).map(|known| &**known) == discovery.as_ref() {
            return;
        }
        match discovery {
            Some(discovery) => {
                state.by_name.insert(name.into(), Arc::new(discovery));
            }
            None => {
                state.by_name.remove(name);
            }
        }
        state.number += 1;
        let number = state.number;
        drop(state);
        self.changes.send_replace(number);
    }
}

impl Discoverer for Aggregation {
    fn discover<'a>(
        &'a self,
        name: &'a str,
        api_service: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async move {
            let Some(service) = api_service.and_then(ApiService::read) else {
                self.discovered.set(name, None);
                return Ok(false);
            };
            let outcome = if service.is_available {
                self.fetch(&service).await
            } else {
                Err("service unavailable".to_owned())
            };
            // The version of an unreachable server is listed without resources.
            let (mut version, freshness) = match &outcome {
                Ok(version) => (version.clone(), CURRENT),
                Err(_) => (VersionDiscovery::default(), "Stale"),
            };
            service.version.as_str().clone_into(&mut version.version);
            freshness.clone_into(&mut version.freshness);
            let documents = match &outcome {
                Ok(_) => self.documents(&service).await,
                Err(_) => self.discovered.of(name).map(|known| known.documents.clone()),
            };
            let documents = documents.unwrap_or_default();
            self.discovered.set(name, Some(Discovery { version: Arc::new(version), documents }));
            outcome.map(|_| true)
        })
    }
}

impl Aggregation {
    /// Requests aggregated discovery, and if the server does not support it, the version's
    /// document.
    async fn fetch(&self, service: &ApiService) -> Result<VersionDiscovery, String> {
        let (head, body) = self.get(service, "/apis", AGGREGATED).await?;
        let content_type = head.headers.get(CONTENT_TYPE).map(header_text::text);
        let is_aggregated =
            content_type.is_some_and(|text| text.contains("as=APIGroupDiscoveryList"));
        match head.status {
            StatusCode::OK if is_aggregated => {
                let list: GroupList = read(&body)?;
                let group = list.items.into_iter().find(|g| g.metadata.name == service.group);
                let versions = group.map(|group| group.versions).unwrap_or_default();
                let version = versions.into_iter().find(|v| v.version == service.version);
                Ok(version.unwrap_or_default())
            }
            StatusCode::SERVICE_UNAVAILABLE => Err("it responds with 503".to_owned()),
            _ => {
                let path = format!("/apis/{}/{}", service.group, service.version);
                let (head, body) = self.get(service, &path, "application/json").await?;
                if head.status != StatusCode::OK {
                    return Err(format!("it responds with {} to {path}", head.status.as_u16()));
                }
                Ok(read::<ResourceList>(&body)?.discovery(&service.version))
            }
        }
    }
}
