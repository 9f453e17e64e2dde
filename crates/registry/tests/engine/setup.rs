//! An engine with ConfigMaps and Deployments of the built-in schema.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use pintle_meta::{GroupVersionKind, GroupVersionResource, Status, User};
use pintle_registry::admission::AdmitAll;
use pintle_registry::request::{
    Body, Context, Encoding, ListOptions, Now, PatchType, Refusal, Target, Warnings, WriteOptions,
    granted,
};
use pintle_registry::results::{Outcome, ResponseBody};
use pintle_registry::table::{Column, Printer, Row};
use pintle_registry::{
    Converting, Etcd, EtcdForm, FieldText, Generation, Members, MetadataChecks, Options, Registry,
    ResourceDefinition, ScalePaths, ScaleVersion, Scope, SelectableField, Storage,
    StorageConverter, Strategy, Subresource, SubresourceBehaviour,
};
use pintle_store::Opening;
use pintle_value::{Value, json};

struct Blank;

impl Printer for Blank {
    fn columns(&self) -> &[Column] {
        &[]
    }

    fn row(&self, _: &Value) -> Row {
        Row::default()
    }
}

/// The field that selectors can use, in all kinds.
fn fields() -> &'static [SelectableField] {
    static FIELDS: LazyLock<[SelectableField; 1]> = LazyLock::new(|| {
        let value = FieldText::At(vec!["data".into(), "node".into()]);
        [SelectableField { label: "data.node".into(), value, is_selective: true }]
    });
    &*FIELDS
}

/// The strategy of a kind with a status.
struct WithStatus(Generation);

impl Strategy for WithStatus {
    fn metadata_checks(&self, _: &str) -> MetadataChecks {
        MetadataChecks { as_update: 1, as_new: 1, qualified_finalizers: true }
    }

    fn fields(&self) -> &[SelectableField] {
        fields()
    }

    fn unconditional_update(&self) -> bool {
        true
    }

    fn reset_fields(&self) -> Members {
        &[&["status"]]
    }

    fn generation(&self) -> Generation {
        self.0
    }
}

fn definition(
    group: &str,
    resource: &str,
    kind: &str,
    generation: Generation,
) -> ResourceDefinition {
    let schema = pintle_schema::builtin();
    let package = if group.is_empty() { "core" } else { group };
    let ty = schema.find(&format!("io.k8s.api.{package}.v1.{kind}")).expect("a built-in type");
    let part = |name: &str, kind: GroupVersionKind, behaviour| Subresource {
        name: name.into(),
        kind,
        verbs: Vec::new(),
        behaviour,
        printer: None,
    };
    ResourceDefinition {
        resource: GroupVersionResource::new(group, "v1", resource),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        singular: kind.to_lowercase().into(),
        scope: Scope::Namespaced,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        storage_kind: GroupVersionKind::new(group, "v1", kind),
        schema: Arc::new(schema.clone()),
        ty,
        strategy: Arc::new(WithStatus(generation)),
        subresources: vec![
            part(
                "status",
                GroupVersionKind::new(group, "v1", kind),
                SubresourceBehaviour::Part(&[&["status"]]),
            ),
            part(
                "scale",
                GroupVersionKind::new("autoscaling", "v1", "Scale"),
                SubresourceBehaviour::Scale(Arc::new(ScalePaths {
                    spec_replicas: vec!["spec".into(), "replicas".into()],
                    status_replicas: vec!["status".into(), "replicas".into()],
                    selector: Some(vec!["spec".into(), "selector".into()]),
                    version: ScaleVersion::V1,
                })),
            ),
        ],
        printer: Arc::new(Blank),
        storage: Some(Storage {
            collection: resource.into(),
            etcd: Etcd { prefix: resource.into(), form: EtcdForm::Protobuf },
            conversion: None,
            converter: None,
            definer: None,
        }),
        allocator: None,
        observer: None,
        action: None,
        deprecation: None,
        typed_items: false,
        described: None,
    }
}

/// Converts to a stored version that has no field `data.lost`.
struct DropsField;

impl StorageConverter for DropsField {
    fn writes_own_form(&self) -> bool {
        false
    }

    fn converts(&self) -> bool {
        true
    }

    fn to_storage(&self, mut objects: Vec<Value>) -> Converting<'_> {
        for data in objects.iter_mut().filter_map(|object| object.get_mut("data")) {
            data.make_object().remove("lost");
        }
        Box::pin(async { Ok(objects) })
    }

    fn to_own_form(&self, objects: Vec<Value>) -> Converting<'_> {
        Box::pin(async { Ok(objects) })
    }

    fn convert<'a>(&'a self, objects: Vec<Value>, _: &'a str) -> Converting<'a> {
        Box::pin(async { Ok(objects) })
    }
}

/// Fills a buffer with different bytes at every call, the same in every run.
fn entropy(bytes: &mut [u8]) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut state = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for byte in bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
}

pub(crate) struct Engine {
    pub(crate) registry: Registry,
}

impl Engine {
    pub(crate) async fn new() -> Self {
        Self::on(Box::new(pintle_store::memory(u64::MAX).expect("a store in memory opens"))).await
    }

    pub(crate) async fn on(store: Box<dyn Opening>) -> Self {
        let options = Options {
            store,
            admission: Arc::new(AdmitAll),
            entropy,
            garbage_collection: false,
            history_bytes_max: usize::MAX,
            encodings_bytes_max: 1 << 20,
        };
        let mut forgetful = definition("", "forgetful", "ConfigMap", Generation::None);
        forgetful.storage =
            forgetful.storage.map(|s| Storage { converter: Some(Arc::new(DropsField)), ..s });
        let definitions = vec![
            forgetful,
            definition("", "configmaps", "ConfigMap", Generation::None),
            definition("apps", "deployments", "Deployment", Generation::Spec),
        ];
        Self { registry: Registry::open(options, definitions).await.expect("the store opens") }
    }

    pub(crate) fn target(&self, resource: &str, name: &str, subresource: &str) -> Target {
        let group = if resource == "deployments" { "apps" } else { "" };
        let gvr = GroupVersionResource::new(group, "v1", resource);
        Target {
            resource: self.registry.resource(&gvr).expect("served"),
            namespace: "ns".into(),
            name: name.into(),
            subresource: subresource.into(),
        }
    }

    pub(crate) async fn create(&self, resource: &str, body: &str) -> Result<Value, Status> {
        let target = self.target(resource, "", "");
        let (body, options, context) = (json_body(body), WriteOptions::default(), context());
        tree(self.registry.create(&target, &body, &options, &context).await?)
    }

    pub(crate) async fn update(
        &self,
        resource: &str,
        name: &str,
        part: &str,
        body: &str,
    ) -> Result<Value, Status> {
        let target = self.target(resource, name, part);
        let (body, options, context) = (json_body(body), WriteOptions::default(), context());
        tree(self.registry.update(&target, &body, &options, &context, &granted).await?)
    }

    pub(crate) async fn merge(
        &self,
        resource: &str,
        name: &str,
        part: &str,
        patch: &str,
    ) -> Result<Value, Status> {
        let target = self.target(resource, name, part);
        let options = WriteOptions::default();
        let patch = patch.as_bytes();
        tree(
            self.registry
                .patch(&target, patch, PatchType::Merge, &options, &context(), &granted)
                .await?,
        )
    }

    pub(crate) async fn apply(
        &self,
        name: &str,
        body: &str,
        may_create: &dyn pintle_registry::request::MayCreate,
    ) -> Result<Value, Status> {
        let target = self.target("configmaps", name, "");
        let options = WriteOptions { field_manager: "me".into(), ..WriteOptions::default() };
        let (body, kind) = (body.as_bytes(), PatchType::Apply(Encoding::Yaml));
        tree(self.registry.patch(&target, body, kind, &options, &context(), may_create).await?)
    }

    pub(crate) async fn list(
        &self,
        options: ListOptions,
    ) -> Result<pintle_registry::results::List, Status> {
        self.registry.list(&self.target("configmaps", "", ""), &options).await
    }
}

pub(crate) fn json_body(text: &str) -> Body {
    Body { bytes: text.to_owned().into(), encoding: Encoding::Json }
}

pub(crate) fn context() -> Context {
    let now = Now { unix_micros: 1_700_000_000_000_000 };
    Context {
        now,
        user: Arc::new(User { name: "someone".to_owned(), ..User::default() }),
        verb: None,
        user_agent: "test".into(),
        warnings: Warnings::default(),
        refusal: Refusal::default(),
        recorder: None,
        timing: Arc::default(),
    }
}

pub(crate) fn tree(outcome: Outcome) -> Result<Value, Status> {
    match outcome.body {
        ResponseBody::Object(object) => Ok(object.tree()?),
        ResponseBody::Value(tree, _) => Ok(tree),
        ResponseBody::Status(status) => Err(status),
    }
}

pub(crate) fn data(pairs: &[(&str, &str)]) -> String {
    let (name, pairs) = (pairs[0].1, &pairs[1..]);
    let data: Value =
        Value::Object(pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect());
    format!(r#"{{"metadata":{{"name":"{name}"}},"data":{}}}"#, json::to_string(&data))
}

/// A store in a directory.
pub(crate) fn on_disk(directory: &Path) -> Box<dyn Opening> {
    let options = pintle_store::Options {
        dir: directory.to_owned(),
        durability: pintle_store::Durability::System,
        history_bytes_max: u64::MAX,
        transformer: None,
    };
    Box::new(pintle_store::open(&options).expect("a store in an empty directory opens"))
}
