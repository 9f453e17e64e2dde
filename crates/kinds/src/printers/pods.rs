//! Pods: the state of their containers in a few words.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pintle_registry::table::{Cell, UnixSeconds};
use pintle_value::Value;

use super::column::Cell::{By, ByTime, FilledOr};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, string};
use super::read::{at, bool_at, deleting, has, holds, int_at, is_true, items_at, str_at, time_at};
use super::text::filled;
use super::{Columns, Kind};

pub(super) const KINDS: &[Kind] = &[Kind::new("", "Pod", POD).with_conditions(completed)];

const POD: Columns = &[
    NAME,
    string(
        "Ready",
        By(ready),
        Words("The aggregate readiness state of this pod for accepting traffic."),
    ),
    string("Status", By(status), Words("The aggregate status of the containers in this pod.")),
    string(
        "Restarts",
        ByTime(restarts),
        Words(
            "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
        ),
    ),
    AGE,
    string("IP", By(ip), Field("core.v1.PodStatus", "podIP")).wide(),
    string("Node", FilledOr("spec.nodeName", "<none>"), Field("core.v1.PodSpec", "nodeName"))
        .wide(),
    string(
        "Nominated Node",
        FilledOr("status.nominatedNodeName", "<none>"),
        Field("core.v1.PodStatus", "nominatedNodeName"),
    )
    .wide(),
    string("Readiness Gates", By(readiness_gates), Field("core.v1.PodSpec", "readinessGates"))
        .wide(),
];

/// Marks a row whose pod will not run again.
fn completed(pod: &Value) -> Vec<Value> {
    let phase = str_at(pod, "status.phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return Vec::new(),
    };
    let condition =
        [("type", "Completed"), ("status", "True"), ("reason", phase), ("message", message)];
    vec![condition.into()]
}

fn ready(pod: &Value) -> Value {
    let containers = items_at(pod, "spec.containers").len();
    let sidecars = items_at(pod, "spec.initContainers").iter().filter(|c| is_sidecar(c)).count();
    format!("{}/{}", Summary::of(pod).ready, containers + sidecars).into()
}

fn status(pod: &Value) -> Value {
    let phase = str_at(pod, "status.phase");
    if deleting(pod) {
        // Upstream: the node controller's reason for pods whose node is gone.
        if str_at(pod, "status.reason") == "NodeLost" {
            return "Unknown".into();
        }
        if !matches!(phase, "Succeeded" | "Failed") {
            return "Terminating".into();
        }
    }
    Summary::of(pod).status.as_ref().into()
}

fn restarts(pod: &Value) -> Cell {
    match Summary::of(pod).restarts {
        Restarts { count, last: Some(time) } if count != 0 => {
            Cell::Since { before: format!("{count} (").into(), time, after: " ago)".into() }
        }
        Restarts { count, .. } => count.to_string().into(),
    }
}

/// The first of the pod's addresses. Where kubelets wrote both members and they differ, `podIP` is
/// the right one.
fn ip(pod: &Value) -> Value {
    let first = items_at(pod, "status.podIPs").first().map_or("", |ip| str_at(ip, "ip"));
    filled(filled(str_at(pod, "status.podIP"), first), "<none>").into()
}

fn readiness_gates(pod: &Value) -> Value {
    let gates = items_at(pod, "spec.readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    // Of several conditions of a type the first one counts.
    let conditions = items_at(pod, "status.conditions").iter().rev();
    let holds: BTreeMap<&str, bool> =
        conditions.map(|condition| (str_at(condition, "type"), is_true(condition))).collect();
    let passed =
        gates.iter().filter(|gate| holds.get(str_at(gate, "conditionType")) == Some(&true));
    let passed = passed.count();
    format!("{passed}/{}", gates.len()).into()
}

/// Whether an init container is a sidecar.
fn is_sidecar(init_container: &Value) -> bool {
    str_at(init_container, "restartPolicy") == "Always"
}

/// The summary of the statuses of a pod's containers.
struct Summary<'a> {
    ready: usize,
    restarts: Restarts,
    status: Cow<'a, str>,
}

/// How often containers were restarted, and when the last one was.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<UnixSeconds>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count = self.count.saturating_add(int_at(container, "restartCount"));
        self.last = self.last.max(time_at(container, "lastState.terminated.finishedAt"));
    }
}

impl<'a> Summary<'a> {
    /// Containers count when the init containers have finished, or when the pod is initialized:
    /// sidecars that fail later do not change that.
    fn of(pod: &'a Value) -> Self {
        let (init, sidecars, initialized) = Self::of_init_containers(pod);
        if !initialized && !holds(pod, "Initialized") {
            return init;
        }
        Self { restarts: sidecars, ..init }.with_containers(pod)
    }

    /// The state that the pod's own status has.
    fn of_pod(pod: &'a Value) -> Self {
        let gated = items_at(pod, "status.conditions").iter().any(|condition| {
            str_at(condition, "type") == "PodScheduled"
                && str_at(condition, "reason") == "SchedulingGated"
        });
        let own = filled(str_at(pod, "status.reason"), str_at(pod, "status.phase"));
        let status = if gated { "SchedulingGated" } else { own };
        Self { ready: 0, restarts: Restarts::default(), status: status.into() }
    }

    /// Returns the summary up to the init container that blocks the pod, the restarts of the
    /// sidecars only, and whether no init container blocks the pod.
    fn of_init_containers(pod: &'a Value) -> (Self, Restarts, bool) {
        let mut summary = Self::of_pod(pod);
        let mut sidecars = Restarts::default();
        let containers = items_at(pod, "spec.initContainers");
        // Of several containers with a name the last one counts.
        let named: BTreeMap<&str, &Value> =
            containers.iter().map(|container| (str_at(container, "name"), container)).collect();
        for (index, status) in items_at(pod, "status.initContainerStatuses").iter().enumerate() {
            let container = named.get(str_at(status, "name"));
            let sidecar = container.is_some_and(|container| is_sidecar(container));
            summary.restarts.add(status);
            if sidecar {
                sidecars.add(status);
            }
            let terminated = at(status, "state.terminated");
            if terminated.is_some_and(|state| int_at(state, "exitCode") == 0) {
                continue;
            }
            if sidecar && bool_at(status, "started") == Some(true) {
                summary.ready += usize::from(bool_at(status, "ready") == Some(true));
                continue;
            }
            summary.status = match (terminated, str_at(status, "state.waiting.reason")) {
                (Some(terminated), _) => format!("Init:{}", reason_of_end(terminated)),
                (None, "" | "PodInitializing") => format!("Init:{index}/{}", containers.len()),
                (None, reason) => format!("Init:{reason}"),
            }
            .into();
            return (summary, sidecars, false);
        }
        (summary, sidecars, true)
    }

    /// Adds the containers: the first one with a reason determines the status.
    fn with_containers(mut self, pod: &'a Value) -> Self {
        let mut running = false;
        let mut error: Option<Cow<'a, str>> = None;
        for status in items_at(pod, "status.containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = str_at(status, "state.waiting.reason");
            if !waiting.is_empty() {
                self.status = waiting.into();
            } else if let Some(terminated) = at(status, "state.terminated") {
                self.status = reason_of_end(terminated);
                if int_at(terminated, "exitCode") != 0 {
                    error = Some(self.status.clone());
                }
            } else if bool_at(status, "ready") == Some(true) && has(status, "state.running") {
                running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            let pod_ready = items_at(pod, "status.conditions")
                .iter()
                .any(|condition| str_at(condition, "type") == "Ready" && is_true(condition));
            self.status = match error {
                _ if running && pod_ready => "Running".into(),
                Some(error) => error,
                None if running => "NotReady".into(),
                None => self.status,
            };
        }
        self
    }
}

/// Why a container ended.
fn reason_of_end(terminated: &Value) -> Cow<'_, str> {
    match (str_at(terminated, "reason"), int_at(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", int_at(terminated, "exitCode")).into(),
        ("", signal) => format!("Signal:{signal}").into(),
        (reason, _) => reason.into(),
    }
}
