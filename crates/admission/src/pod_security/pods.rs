//! Warnings about the pods of a namespace whose enforced policy changes (upstream:
//! `EvaluatePodsInNamespace`).
//!
//! There may be many pods, so the check has a deadline, as in upstream, and pauses.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_meta::quote::quote;
use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::{Object, Registry, Unreadable, work};
use pintle_value::Value;

use super::checks::violations;
use super::policy::Policy;
use crate::pace::Pace;
use crate::pods::items;

/// The most pods of a namespace that are checked (upstream: `defaultNamespaceMaxPodsToCheck`).
const PODS_MAX: usize = 3000;

/// How long pods are checked (upstream: `defaultNamespacePodCheckTimeout`).
const CHECK_MAX: Duration = Duration::from_secs(1);

/// The members that checks and warnings read.
const CHECKED: &[&[&str]] = &[&["metadata", "name"], &["metadata", "annotations"], &["spec"]];

/// Pods by the reasons for which the policy would refuse them.
pub(super) type Refused = BTreeMap<String, Vec<String>>;

/// Warnings about a namespace's pods that a policy would refuse, grouped.
pub(super) async fn warnings(
    registry: &Registry,
    namespace: &str,
    policy: Policy,
) -> Result<Vec<String>, Status> {
    let pods = registry.resource(&GroupVersionResource::new("", "v1", "pods"));
    let pods = pods.map(|pods| registry.objects_in(&pods, namespace)).unwrap_or_default();
    let count = pods.len();
    work::ahead(pods.iter().map(|pod| pod.size()).sum()).await;
    let (refused, checked) = check(pods, policy, CHECK_MAX).await?;
    let mut warnings = Vec::new();
    if checked < count {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {count} \
             existing pods"
        ));
    }
    if !refused.is_empty() {
        let namespace = quote(namespace);
        warnings.push(format!(
            "existing pods in namespace {namespace} violate the new PodSecurity enforce level \
             \"{policy}\""
        ));
    }
    let mut groups: Vec<String> =
        refused.into_iter().map(|(why, pods)| group_warning(&why, pods)).collect();
    groups.sort_unstable();
    warnings.extend(groups);
    Ok(warnings)
}

/// Checks pods: first those without a controller and one pod of each controller, and then the
/// others. Stops at [`PODS_MAX`], and at the first pod after the deadline. Returns also the number
/// of checked pods.
pub(super) async fn check(
    pods: Vec<Arc<Object>>,
    policy: Policy,
    check_max: Duration,
) -> Result<(Refused, usize), Unreadable> {
    let (began, mut pace) = (Instant::now(), Pace::begin());
    let (mut refused, mut checked) = (Refused::new(), 0);
    let (mut controllers, mut later) = (HashSet::new(), Vec::new());
    let mut pods = pods.into_iter();
    while checked < PODS_MAX {
        if checked > 0 && began.elapsed() >= check_max {
            break;
        }
        pace.step().await;
        let pod = match pods.next() {
            Some(pod) => {
                let controller = controller(&pod)?;
                if controller.is_some_and(|uid| !controllers.insert(uid)) {
                    later.push(pod);
                    continue;
                }
                pod
            }
            None => match later.pop() {
                Some(pod) => pod,
                None => break,
            },
        };
        checked += 1;
        let pod = pod.excerpt(CHECKED)?;
        let found = violations(policy, &pod);
        if !found.is_empty() {
            let name = object::name(&pod).to_owned();
            refused.entry(found.reasons()).or_default().push(name);
        }
    }
    Ok((refused, checked))
}

/// The UID of the controller of a pod, of which only the owners are decoded.
fn controller(pod: &Object) -> Result<Option<String>, Unreadable> {
    const OWNERS: &[&str] = &["metadata", "ownerReferences"];
    let pod = pod.excerpt(&[OWNERS])?;
    let is_controller = |owner: &&Value| owner.get("controller") == Some(&Value::Bool(true));
    let controller = items(&pod, OWNERS).iter().find(is_controller);
    Ok(controller.and_then(|owner| owner.str_at(&["uid"])).map(str::to_owned))
}

/// Returns the warning about pods that violate a policy for the same reason.
pub(super) fn group_warning(why: &str, mut pods: Vec<String>) -> String {
    pods.sort_unstable();
    let first = pods.first().map_or("", String::as_str);
    match pods.len() {
        1 => format!("{first}: {why}"),
        2 => format!("{first} (and 1 other pod): {why}"),
        count => format!("{first} (and {} other pods): {why}", count - 1),
    }
}
