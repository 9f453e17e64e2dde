//! A registry over a store in memory, with all built-in kinds and some plugins, for tests of plugins
//! that read stored objects.

use std::sync::Arc;

use pintle_cel::{Authorizer, Decision, Question};
use pintle_kinds::{RuntimeConfig, definitions};
use pintle_meta::{GroupVersion, Status, User, object};
use pintle_registry::admission::{Admission, Chain};
use pintle_registry::request::{
    Body, Context, Encoding, Now, Refusal, Target, Warnings, WriteOptions, granted,
};
use pintle_registry::{Object, Options, Registry, Resource};
use pintle_value::{Str, Value, json};

use crate::permissions::{ExpressionAuthorizer, PendingRuling, Permissions};

pub(crate) struct Cluster {
    pub(crate) registry: Registry,
}

pub(crate) fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

impl Cluster {
    pub(crate) async fn with(plugins: Vec<Box<dyn Admission>>) -> Self {
        let options = Options {
            store: Box::new(pintle_store::memory(u64::MAX).expect("a store in memory opens")),
            admission: Arc::new(Chain::new(plugins)),
            entropy: |bytes| bytes.fill(1),
            garbage_collection: true,
            history_bytes_max: usize::MAX,
            encodings_bytes_max: 1 << 20,
        };
        let definitions = definitions(&RuntimeConfig::default());
        let registry = Registry::open(options, definitions).await.expect("an empty store opens");
        Self { registry }
    }

    fn resource(&self, name: &str) -> Arc<Resource> {
        let (group, resource) = name.split_once('/').unwrap_or(("", name));
        let name = pintle_meta::GroupVersionResource::new(group, "v1", resource);
        self.registry.resource(&name).unwrap_or_else(|| panic!("{name:?} is not served"))
    }

    /// Creates an object of a resource; returns the warnings.
    pub(crate) async fn create(&self, resource: &str, text: &str) -> Result<Vec<String>, Status> {
        let (target, body, context) = self.request(resource, tree(text), "");
        let options = WriteOptions::default();
        self.registry.create(&target, &body, &options, &context).await?;
        Ok(context.warnings.take())
    }

    /// Replaces an object, whatever its resource version; returns the warnings.
    pub(crate) async fn update(&self, resource: &str, text: &str) -> Result<Vec<String>, Status> {
        let object = tree(text);
        let name = Str::from(object::name(&object));
        let (target, body, context) = self.request(resource, object, &name);
        let options = WriteOptions::default();
        self.registry.update(&target, &body, &options, &context, &granted).await?;
        Ok(context.warnings.take())
    }

    fn request(&self, resource: &str, mut object: Value, name: &str) -> (Target, Body, Context) {
        let resource = self.resource(resource);
        let r = &resource.resource;
        let version = GroupVersion::new(r.group.clone(), r.version.clone()).to_string();
        object.make_object().insert("apiVersion", version);
        object.make_object().insert("kind", resource.kind.clone());
        let context = Context {
            now: Now { unix_micros: 1_000_000_000_000 },
            user: Arc::new(User::server("test")),
            verb: None,
            user_agent: Str::default(),
            warnings: Warnings::default(),
            timing: Arc::default(),
            refusal: Refusal::default(),
            recorder: None,
        };
        let target = Target {
            resource,
            namespace: object::namespace(&object).into(),
            name: name.into(),
            subresource: Str::default(),
        };
        let body = Body { bytes: json::to_string(&object).into(), encoding: Encoding::Json };
        (target, body, context)
    }

    /// The stored objects of a resource in a namespace.
    pub(crate) fn objects(&self, resource: &str, namespace: &str) -> Vec<Arc<Object>> {
        self.registry.objects_in(&self.resource(resource), namespace)
    }
}

/// Allows nothing.
#[derive(Debug)]
pub(crate) struct NoPermissions;

impl Permissions for NoPermissions {
    fn of(&self, _: &User) -> Arc<dyn ExpressionAuthorizer> {
        Arc::new(Self)
    }
}

impl ExpressionAuthorizer for NoPermissions {
    fn pending(&self) -> Option<PendingRuling<'_>> {
        None
    }
}

impl Authorizer for NoPermissions {
    fn authorize(&self, _: &Question<'_>) -> Decision {
        Decision::default()
    }
}
