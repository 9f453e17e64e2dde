//! A registry over a store in memory, with all built-in kinds and their effects, for tests.

use std::sync::Arc;

use pintle_kinds::{RuntimeConfig, definitions};
use pintle_meta::{GroupVersionResource, Status, User};
use pintle_registry::admission::{Admission, AdmitAll};
use pintle_registry::request::{
    Body, Context, Encoding, Now, Refusal, Target, Warnings, WriteOptions, granted,
};
use pintle_registry::{Options, Registry};
use pintle_value::{Value, json};

use crate::{Measures, PortRange, Settings, attach};

pub(crate) const NAMESPACE: &str = "ns";

pub(crate) fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) async fn registry() -> Registry {
    registry_with(Arc::new(AdmitAll)).await
}

pub(crate) async fn registry_with(admission: Arc<dyn Admission>) -> Registry {
    let mut definitions = definitions(&RuntimeConfig::default());
    let settings = Settings {
        service_ranges: &["10.0.0.0/16"],
        node_ports: PortRange::default(),
        entropy: |bytes| bytes.fill(7),
        measures: Arc::<Measures>::default(),
    };
    attach(&mut definitions, &settings).expect("a range");
    let options = Options {
        store: Box::new(pintle_store::memory(u64::MAX).expect("a store in memory opens")),
        admission,
        entropy,
        garbage_collection: false,
        history_bytes_max: usize::MAX,
        encodings_bytes_max: 1 << 20,
    };
    Registry::open(options, definitions).await.expect("an empty store opens")
}

/// Fills a buffer with bytes that differ at every call, so that UIDs do.
fn entropy(bytes: &mut [u8]) {
    use std::sync::atomic::{AtomicU8, Ordering};
    static NEXT: AtomicU8 = AtomicU8::new(0);
    bytes.iter_mut().for_each(|byte| *byte = NEXT.fetch_add(1, Ordering::Relaxed));
}

pub(crate) fn context() -> Context {
    Context {
        now: Now { unix_micros: 1_700_000_000_000_000 },
        user: Arc::new(User::server("test")),
        verb: None,
        user_agent: "test".into(),
        warnings: Warnings::default(),
        timing: Arc::default(),
        refusal: Refusal::default(),
        recorder: None,
    }
}

/// The target of an object of the group `""` in the namespace, or of its subresource.
pub(crate) fn target(registry: &Registry, plural: &'static str, name: &str, part: &str) -> Target {
    let resource = registry.resource(&GroupVersionResource::new("", "v1", plural));
    Target {
        resource: resource.unwrap_or_else(|| panic!("{plural} are not served")),
        namespace: NAMESPACE.into(),
        name: name.into(),
        subresource: part.into(),
    }
}

pub(crate) fn body(object: &Value) -> Body {
    Body { bytes: json::to_string(object).into(), encoding: Encoding::Json }
}

/// Posts an object of version v1.
pub(crate) async fn create(
    registry: &Registry,
    to: &Target,
    mut object: Value,
) -> Result<(), Status> {
    object.make_object().entry_or("apiVersion", || "v1".into());
    object.make_object().entry_or("kind", || to.resource.kind.clone().into());
    let (options, context) = (WriteOptions::default(), context());
    registry.create(to, &body(&object), &options, &context).await.map(|_| ())
}

/// Replaces the status of an object.
pub(crate) async fn set_status(registry: &Registry, plural: &'static str, object: &Value) {
    let name = pintle_meta::object::name(object);
    let to = target(registry, plural, name, "status");
    let (options, context) = (WriteOptions::default(), context());
    let updated = registry.update(&to, &body(object), &options, &context, &granted).await;
    updated.map(|_| ()).unwrap_or_else(|status| panic!("{status}"));
}
