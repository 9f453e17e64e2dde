//! A registry over a store in memory, with all built-in kinds, for the controllers' tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use pintle_admission::NamespaceLifecycle;
use pintle_admission::quota::ResourceQuota;
use pintle_kinds::{RuntimeConfig, definitions};
use pintle_meta::{GroupVersion, Status, object};
use pintle_registry::admission::{Admission, Attributes, Chain, Hook, Hooks, Waited};
use pintle_registry::request::{
    DeleteOptions, ListOptions, Now, Propagation, WriteOptions, granted,
};
use pintle_registry::results::{Event, ResponseBody};
use pintle_registry::watch::Watch;
use pintle_registry::{Options, Registry, Resource, ResourceDefinition};
use pintle_value::{Value, json};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::{Environment, body, target};

/// How long a test waits before it fails.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    pub(crate) environment: Environment,
    now_seconds: Arc<AtomicI64>,
}

pub(crate) fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
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

/// Delays new objects with the label `held` after admission, as a slow webhook does, until it is
/// opened.
#[derive(Clone)]
pub(crate) struct Gate(Arc<(Semaphore, Semaphore)>);

impl Gate {
    /// Waits until an object is delayed.
    pub(crate) async fn reached(&self) {
        self.0.0.acquire().await.expect("the gate stays").forget();
    }

    /// Releases one object.
    pub(crate) fn open(&self) {
        self.0.1.add_permits(1);
    }
}

impl Admission for Gate {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::ValidateRegistered])
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        _: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        write.object?.at(&["metadata", "labels", "held"])?;
        Some(Box::pin(async {
            self.0.0.add_permits(1);
            self.0.1.acquire().await.expect("the gate stays").forget();
            Ok(())
        }))
    }
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::start_with(Arc::new(NamespaceLifecycle), definitions(&RuntimeConfig::default())).await
    }

    /// Starts a cluster that assigns addresses and ports to services.
    pub(crate) async fn assigning() -> Self {
        let mut definitions = definitions(&RuntimeConfig::default());
        let effects = pintle_effects::Settings {
            service_ranges: &["10.0.0.0/16"],
            node_ports: pintle_effects::PortRange::default(),
            entropy,
            measures: Arc::default(),
        };
        pintle_effects::attach(&mut definitions, &effects).expect("a range");
        let cluster = Self::start_with(Arc::new(NamespaceLifecycle), definitions).await;
        let mut ports = pintle_effects::PortRepair::new(effects.node_ports, Arc::default());
        ports.repair(&cluster.environment.registry).await.expect("the record is made");
        cluster
    }

    /// Starts a cluster that serves storage version migrations.
    pub(crate) async fn migrating() -> Self {
        let feature = pintle_kinds::Feature::StorageVersionMigrator;
        let config = RuntimeConfig::parse(["storagemigration.k8s.io/v1beta1=true"]);
        let config = config.expect("a known version").with([feature].into_iter().collect());
        Self::start_with(Arc::new(NamespaceLifecycle), definitions(&config)).await
    }

    /// Starts a cluster that enforces quotas.
    pub(crate) async fn limited() -> Arc<Self> {
        let chain: Vec<Box<dyn Admission>> =
            vec![Box::new(NamespaceLifecycle), Box::new(ResourceQuota::new(Vec::new()))];
        let definitions = definitions(&RuntimeConfig::default());
        Arc::new(Self::start_with(Arc::new(Chain::new(chain)), definitions).await)
    }

    /// Starts a cluster with a gate for new objects.
    pub(crate) async fn gated() -> (Arc<Self>, Gate) {
        let gate = Gate(Arc::new((Semaphore::new(0), Semaphore::new(0))));
        let chain: Vec<Box<dyn Admission>> =
            vec![Box::new(NamespaceLifecycle), Box::new(gate.clone())];
        let definitions = definitions(&RuntimeConfig::default());
        (Arc::new(Self::start_with(Arc::new(Chain::new(chain)), definitions).await), gate)
    }

    async fn start_with(
        admission: Arc<dyn Admission>,
        definitions: Vec<ResourceDefinition>,
    ) -> Self {
        let options = Options {
            store: Box::new(pintle_store::memory(u64::MAX).expect("a store in memory opens")),
            admission,
            entropy,
            garbage_collection: true,
            history_bytes_max: usize::MAX,
            encodings_bytes_max: 1 << 20,
        };
        let registry = Registry::open(options, definitions).await.expect("an empty store opens");
        let now_seconds = Arc::new(AtomicI64::new(1_000_000));
        let clock = {
            let now = now_seconds.clone();
            move || Now { unix_micros: now.load(Ordering::Relaxed) * 1_000_000 }
        };
        let environment = Environment::new(Arc::new(registry), Arc::new(clock));
        Self { environment, now_seconds }
    }

    pub(crate) fn pass_seconds(&self, seconds: i64) {
        self.now_seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    fn resource(&self, name: &str) -> Arc<Resource> {
        let (group, resource) = name.split_once('/').unwrap_or(("", name));
        let mut found =
            ["v1", "v1beta1"].iter().filter_map(|v| self.environment.resource(group, v, resource));
        let found = found.next();
        found.unwrap_or_else(|| panic!("{name} is not served"))
    }

    /// Creates an object of a resource.
    pub(crate) async fn create(&self, resource: &str, text: &str) -> Result<Value, Status> {
        self.create_as("test", resource, text).await
    }

    /// Creates an object of a resource, as a user.
    pub(crate) async fn create_as(
        &self,
        user: &str,
        resource: &str,
        text: &str,
    ) -> Result<Value, Status> {
        let mut object = tree(text);
        let resource = self.resource(resource);
        let r = &resource.resource;
        let version = GroupVersion::new(r.group.clone(), r.version.clone()).to_string();
        object.make_object().insert("apiVersion", version);
        object.make_object().insert("kind", resource.kind.clone());
        let collection = target(&resource, object::namespace(&object), "", "");
        let mut context = self.environment.context("test");
        context.user = Arc::new(pintle_meta::User::server(user));
        let options = WriteOptions::default();
        let created = self
            .environment
            .registry
            .create(&collection, &body(&object), &options, &context)
            .await?;
        match created.body {
            ResponseBody::Object(object) => resource.tree(&object),
            ResponseBody::Value(..) | ResponseBody::Status(_) => {
                panic!("creating answers with the object")
            }
        }
    }

    pub(crate) fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.resource(resource);
        let object = self.environment.registry.peek(&resource, namespace, name)?;
        Some(resource.tree(&object).expect("a stored object is readable"))
    }

    /// Replaces an object, whatever its resource version.
    pub(crate) async fn update(&self, resource: &str, object: Value) -> Result<(), Status> {
        self.update_part(resource, "", object).await
    }

    /// Replaces a subresource of an object, whatever its resource version.
    pub(crate) async fn update_part(
        &self,
        resource: &str,
        part: &str,
        mut object: Value,
    ) -> Result<(), Status> {
        let resource = self.resource(resource);
        object::set_text(&mut object, "resourceVersion", "");
        let one = target(&resource, object::namespace(&object), object::name(&object), part);
        let context = self.environment.context("test");
        let options = WriteOptions::default();
        self.environment
            .registry
            .update(&one, &body(&object), &options, &context, &granted)
            .await
            .map(|_| ())
    }

    pub(crate) async fn delete(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Status> {
        let one = target(&self.resource(resource), namespace, name, "");
        let context = self.environment.context("test");
        let options = DeleteOptions::default();
        self.environment.registry.delete(&one, &options, &context).await.map(|_| ())
    }

    /// Deletes an object without grace period.
    pub(crate) async fn delete_now(&self, resource: &str, namespace: &str, name: &str) {
        let one = target(&self.resource(resource), namespace, name, "");
        let context = self.environment.context("test");
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        let deleted = self.environment.registry.delete(&one, &options, &context).await;
        deleted.map(|_| ()).unwrap_or_else(|status| panic!("{status}"));
    }

    pub(crate) async fn delete_with(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        propagation: Propagation,
    ) {
        let one = target(&self.resource(resource), namespace, name, "");
        let context = self.environment.context("test");
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        let deleted = self.environment.registry.delete(&one, &options, &context).await;
        deleted.map(|_| ()).unwrap_or_else(|status| panic!("{status}"));
    }

    /// Returns the number of objects of a resource.
    pub(crate) async fn count(&self, resource: &str) -> usize {
        let all = target(&self.resource(resource), "", "", "");
        let list = self.environment.registry.list(&all, &ListOptions::default()).await;
        list.map(|list| list.objects.len()).unwrap_or_else(|status| panic!("{status}"))
    }

    pub(crate) async fn watch(&self, resource: &str) -> Watch {
        let all = target(&self.resource(resource), "", "", "");
        let watch = self.environment.registry.watch(&all, &ListOptions::default()).await;
        watch.unwrap_or_else(|status| panic!("{status}"))
    }

    /// Waits until an object satisfies `wanted`.
    pub(crate) async fn see(
        &self,
        resource: &str,
        name: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        self.see_in(resource, "", name, wanted).await
    }

    /// Waits until an object of a namespace (`""` for any) satisfies `wanted`.
    pub(crate) async fn see_in(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut watch = self.watch(resource).await;
        loop {
            for event in next(&mut watch).await {
                if let Event::Added(object) | Event::Modified(object) = event
                    && (namespace.is_empty() || object.namespace() == namespace)
                    && object.name() == name
                    && let Ok(tree) = object.tree()
                    && wanted(&tree)
                {
                    return tree;
                }
            }
        }
    }
}

/// Waits for the next events of a watch.
pub(crate) async fn next(watch: &mut Watch) -> Vec<Event> {
    tokio::time::timeout(TIMEOUT, watch.next())
        .await
        .expect("something happens in time")
        .expect("the watch continues")
}

/// Waits until an object is deleted.
pub(crate) async fn gone(watch: &mut Watch, name: &str) {
    loop {
        let events = next(watch).await;
        if events.iter().any(|e| matches!(e, Event::Deleted(object) if object.name() == name)) {
            return;
        }
    }
}

/// A running controller, with the means to stop it.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start<F>(controller: impl FnOnce(oneshot::Receiver<()>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(controller(stopped)) }
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).expect("it still works");
        let ended = tokio::time::timeout(TIMEOUT, self.task).await;
        ended.expect("it stops in time").expect("it does not fail");
    }
}
