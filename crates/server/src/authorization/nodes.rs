//! The authorizer of the mode Node, over the registry's objects.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_auth::node::{Graph, Kind, Policy};
use pintle_auth::rbac::Rule;
use pintle_auth::{Attributes, Authorizer, Rules, RulingFuture, User};
use pintle_measure::{Distribution, nanoseconds};
use pintle_meta::GroupVersionResource;
use pintle_registry::{Object, Registry};
use pintle_store::Kind as Change;

use super::followed::{Followed, Index};
use crate::config::Config;
use crate::feature_gates::Feature;

/// Upstream's buckets of changes of the graph.
pub(crate) static NODE_GRAPH_BOUNDS: [u64; 12] = nanoseconds([
    0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512, 0.1024, 0.2048,
]);
/// The interval at which changes are applied to the graph. A query applies the rest, so rulings are
/// always current; the interval bounds the work of a query.
const INTERVAL: Duration = Duration::from_millis(200);

/// The authorizer.
pub(crate) struct Nodes {
    policy: Policy,
    graph: Followed<Measured>,
    pub(crate) measures: Arc<GraphMeasures>,
}

impl Nodes {
    pub(super) fn new(config: &Config) -> Self {
        let features = config.feature_gates.of_kinds();
        let measures = Arc::new(GraphMeasures::new());
        let graph = Measured { graph: Graph::default(), measures: measures.clone() };
        Self {
            policy: Policy {
                rules: Rule::all_of(&pintle_kinds::bootstrap::node_role(features)),
                pod_certificates: config
                    .feature_gates
                    .has(Feature::Kinds(pintle_kinds::Feature::PodCertificateRequest)),
            },
            graph: Followed::new(graph),
            measures,
        }
    }

    /// Starts to follow a registry, and applies its present objects now rather than in the first
    /// query.
    pub(crate) fn follow(&self, registry: &Registry) {
        self.graph.follow(
            registry,
            Kind::ALL.map(|kind| {
                let (group, version, resource) = kind.resource();
                (kind, GroupVersionResource::new(group, version, resource))
            }),
        );
        drop(self.graph.current());
    }

    /// Applies changes at intervals, so that queries have few to apply.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            drop(self.graph.current());
        }
    }
}

impl Authorizer for Nodes {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        let reaches = |node: &_, object: &_| self.graph.current().graph.reaches(node, object);
        self.policy.authorize(attributes, reaches).into()
    }

    fn rules(&self, user: &User, _: &str) -> Rules {
        Policy::list(user)
    }
}

/// The graph with measures of its changes.
struct Measured {
    graph: Graph,
    measures: Arc<GraphMeasures>,
}

impl Index for Measured {
    type Kind = Kind;

    fn take(&mut self, kind: Kind, object: &Object) {
        let began = Instant::now();
        let (namespace, name) = (object.namespace(), object.name());
        let is_gone = object.kind() == Change::Deleted;
        if is_gone {
            self.graph.remove(kind, namespace, name);
        } else {
            match object.excerpt(kind.members()) {
                Ok(tree) => self.graph.set(kind, namespace, name, &tree),
                Err(why) => {
                    tracing::error!(
                        "cannot read an object, so nodes get no rights through it: {why}"
                    );
                    self.graph.remove(kind, namespace, name);
                }
            }
        }
        self.measures.of(kind, is_gone).took(began.elapsed());
    }

    fn clear(&mut self, kind: Kind) {
        self.graph.clear(kind);
    }
}

/// The time that changes of the graph take.
pub(crate) struct GraphMeasures([[Distribution; 2]; Kind::ALL.len()]);

/// Upstream's names of adding and deleting an object.
const OPERATIONS: [[&str; 2]; Kind::ALL.len()] = [
    ["AddVolumeAttachment", "DeleteVolumeAttachment"],
    ["AddPodCertificateRequest", "DeletePodCertificateRequest"],
    ["AddPod", "DeletePod"],
    ["AddResourceSlice", "DeleteResourceSlice"],
    ["AddPV", "DeletePV"],
];

impl GraphMeasures {
    fn new() -> Self {
        Self(std::array::from_fn(|_| {
            std::array::from_fn(|_| Distribution::new(&NODE_GRAPH_BOUNDS))
        }))
    }

    fn of(&self, kind: Kind, is_gone: bool) -> &Distribution {
        &self.0[kind as usize][usize::from(is_gone)]
    }

    /// All distributions with upstream's names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &Distribution)> {
        OPERATIONS.iter().flatten().copied().zip(self.0.iter().flatten())
    }
}
