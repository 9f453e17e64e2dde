//! An index of the APIServices of extension API servers.
//!
//! Each query first applies pending changes, so it sees every write that was acknowledged before
//! it. Usually no change is pending.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use pintle_meta::{GroupVersionResource, object};
use pintle_registry::{Feed, FeedUpdate, Object, Registry};
use pintle_store::Kind;
use pintle_value::{Str, Value};

use crate::backends::Trust;

/// The default port of a service.
const DEFAULT_PORT: u16 = 443;

/// A group version and its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiService {
    pub(crate) name: Str,
    pub(crate) group: Str,
    pub(crate) version: Str,
    pub(crate) namespace: Str,
    pub(crate) service: Str,
    pub(crate) port: u16,
    pub(crate) trust: Trust,
    /// Whether its condition `Available` is true.
    pub(crate) is_available: bool,
    pub(crate) group_priority: i64,
    pub(crate) version_priority: i64,
}

impl ApiService {
    /// Parses an APIService; `None` if this server serves it itself.
    pub(crate) fn read(tree: &Value) -> Option<Self> {
        let spec = tree.get("spec")?;
        let service = spec.get("service").filter(|service| !service.is_null())?;
        let text = |member: &str| Str::from(spec.str_at(&[member]).unwrap_or_default());
        let number = |member: &str| spec.get(member).and_then(Value::as_int).unwrap_or_default();
        let named = |member: &str| Str::from(service.str_at(&[member]).unwrap_or_default());
        let port = service.get("port").and_then(Value::as_int);
        let trust = if spec.get("insecureSkipTLSVerify").and_then(Value::as_bool) == Some(true) {
            Trust::Anyone
        } else {
            // Validation has refused invalid base64; an invalid bundle trusts no certificate.
            let bundle = spec.str_at(&["caBundle"]).unwrap_or_default();
            Trust::Bundle(STANDARD.decode(bundle).unwrap_or_else(|_| bundle.into()))
        };
        Some(Self {
            name: object::name(tree).into(),
            group: text("group"),
            version: text("version"),
            namespace: named("namespace"),
            service: named("name"),
            port: port.and_then(|port| u16::try_from(port).ok()).unwrap_or(DEFAULT_PORT),
            trust,
            is_available: is_available(tree),
            group_priority: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
        })
    }
}

fn is_available(tree: &Value) -> bool {
    let conditions = tree.at(&["status", "conditions"]).and_then(Value::as_array);
    conditions.unwrap_or_default().iter().any(|condition| {
        condition.str_at(&["type"]) == Some("Available")
            && condition.str_at(&["status"]) == Some("True")
    })
}

/// The APIServices of extension API servers.
#[derive(Default)]
pub(crate) struct ApiServices(RwLock<State>);

#[derive(Default)]
pub(crate) struct State {
    feed: Option<Feed>,
    by_name: BTreeMap<Str, Arc<ApiService>>,
    /// The number of changes.
    number: u64,
}

impl ApiServices {
    /// Starts to follow a registry.
    pub(crate) fn follow(&self, registry: &Registry) {
        let name = GroupVersionResource::new("apiregistration.k8s.io", "v1", "apiservices");
        self.0.write().feed = registry.resource(&name).map(|resource| registry.feed(&resource));
    }

    /// The current APIServices.
    pub(crate) fn current(&self) -> RwLockReadGuard<'_, State> {
        let state = self.0.read();
        if state.feed.as_ref().is_none_or(Feed::is_current) {
            return state;
        }
        drop(state);
        let mut state = self.0.write();
        state.catch_up();
        RwLockWriteGuard::downgrade(state)
    }
}

impl State {
    /// The extension API server of a group version, if there is one.
    pub(crate) fn of(&self, group: &str, version: &str) -> Option<&Arc<ApiService>> {
        if self.by_name.is_empty() {
            return None; // the common case allocates no key
        }
        self.by_name.get(format!("{version}.{group}").as_str())
    }

    /// All APIServices of extension API servers, in the order of their names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ApiService>> {
        self.by_name.values()
    }

    /// The generation: it grows with each change.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    fn catch_up(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        let (anew, objects) = match feed.take() {
            Ok(FeedUpdate::State(objects)) => (true, objects),
            Ok(FeedUpdate::Changes(objects)) => (false, objects),
            Err(_) => return, // the last known services stay
        };
        if anew {
            self.number += 1;
            self.by_name.clear();
        }
        objects.iter().for_each(|object| self.take(object));
    }

    fn take(&mut self, object: &Object) {
        let service = match object.kind() {
            Kind::Deleted => None,
            Kind::Created | Kind::Updated => object.tree().map_or_else(
                |why| {
                    tracing::error!(
                        "cannot read a stored APIService, so its group version is not served: {why}"
                    );
                    None
                },
                |tree| ApiService::read(&tree),
            ),
        };
        let changed = match service {
            Some(service) => {
                let service = Arc::new(service);
                let before = self.by_name.insert(object.name().into(), service.clone());
                before != Some(service)
            }
            None => self.by_name.remove(object.name()).is_some(),
        };
        self.number += u64::from(changed);
    }
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    #[test]
    fn api_services_are_parsed() {
        let read = |text: &str| ApiService::read(&json::parse(text.as_bytes()).unwrap());
        let local = r#"{"metadata":{"name":"v1.a.io"},"spec":{"group":"a.io","version":"v1"}}"#;
        assert_eq!(read(local), None);
        let elsewhere = r#"{"metadata":{"name":"v1.a.io"},"spec":{"group":"a.io","version":"v1",
            "caBundle":"YWJj","groupPriorityMinimum":7,"versionPriority":8,
            "service":{"namespace":"n","name":"s"}},
            "status":{"conditions":[{"type":"Available","status":"True"}]}}"#;
        let service = read(elsewhere).unwrap();
        assert_eq!(service.trust, Trust::Bundle(b"abc".to_vec()));
        assert_eq!((service.port, service.is_available), (443, true));
        assert_eq!((service.group_priority, service.version_priority), (7, 8));
        let insecure = elsewhere.replace(r#""caBundle":"YWJj""#, r#""insecureSkipTLSVerify":true"#);
        let service = read(&insecure.replace(r#""True""#, r#""Unknown""#)).unwrap();
        assert_eq!((service.trust, service.is_available), (Trust::Anyone, false));
    }
}
