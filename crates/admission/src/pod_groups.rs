//! Pod groups, which are scheduled together (upstream: `PodGroupWorkloadExists`, `JobValidation`).
//! There are none if their feature is off.

use pintle_meta::quote::quote;
use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_value::Value;

use crate::{creates, forbidden, is_of};

pub(crate) const GROUP: &str = "scheduling.k8s.io";
const VERSION: &str = "v1alpha2";

/// PodGroupWorkloadExists: refuses a new group whose workload does not exist, is being deleted, or
/// does not have the group's template.
pub(crate) struct WorkloadExists;

impl Admission for WorkloadExists {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let Some(group) = write.object.filter(|_| creates(write, GROUP, "podgroups")) else {
            return Ok(());
        };
        let Some(reference) = group.at(&["spec", "podGroupTemplateRef", "workload"]) else {
            return Ok(());
        };
        let of = |member| reference.str_at(&[member]).unwrap_or_default();
        let (name, template) = (of("workloadName"), of("podGroupTemplateName"));
        let refuse =
            |why: String| Err(forbidden(write, group, &format!("PodGroup rejected: {why}")));
        let workload = stored(registry, "workloads", write.namespace, name)?;
        let name = quote(name);
        let Some(workload) = workload else {
            return refuse(format!("Workload {name} not found"));
        };
        if object::is_terminating(&workload) {
            return refuse(format!("Workload {name} is being deleted"));
        }
        let templates = workload.at(&["spec", "podGroupTemplates"]).and_then(Value::as_array);
        let mut names = templates.unwrap_or_default().iter().map(|one| one.str_at(&["name"]));
        if names.any(|name| name == Some(template)) {
            return Ok(());
        }
        let template = quote(template);
        refuse(format!("PodGroupTemplate {template} not found in Workload {name}"))
    }
}

/// JobValidation: refuses to change the parallelism of a job whose pods are scheduled together.
pub(crate) struct JobValidation;

impl Admission for JobValidation {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let is_it = is_of(write, "batch", "jobs") && write.operation == Operation::Update;
        let objects = write.object.filter(|_| is_it).and_then(|new| Some((new, write.old()?)));
        let Some((new, old)) = objects else { return Ok(()) };
        let count = |job: &Value| job.at(&["spec", "parallelism"]).and_then(Value::as_int);
        if count(new) == count(old) {
            return Ok(());
        }
        let Some(gang) = gang(registry, write.namespace, old)? else { return Ok(()) };
        let why = format!(
            "cannot change parallelism for a Job referencing gang-scheduled PodGroup {}",
            quote(&gang)
        );
        Err(forbidden(write, new, &why))
    }
}

/// Returns the name of the group that schedules all pods of a job at once: the group that the job's
/// template names or, if the template names none, a group that the job controls. Returns `None` if
/// there is no such group, or it does not schedule its pods at once.
fn gang(registry: &Registry, namespace: &str, job: &Value) -> Result<Option<String>, Status> {
    let is_gang = |group: &Value| group.at(&["spec", "schedulingPolicy", "gang"]).is_some();
    let named = ["spec", "template", "spec", "schedulingGroup", "podGroupName"];
    if let Some(name) = job.str_at(&named) {
        let group = stored(registry, "podgroups", namespace, name)?;
        return Ok(group.filter(is_gang).map(|_| name.to_owned()));
    }
    let Some(groups) = registry.resource(&resource("podgroups")) else { return Ok(None) };
    const DECIDING: &[&[&str]] =
        &[&["metadata", "ownerReferences"], &["spec", "schedulingPolicy", "gang"]];
    for stored in registry.objects_in(&groups, namespace) {
        let group = stored.excerpt(DECIDING)?;
        if is_gang(&group) && is_controlled_by(&group, object::uid(job)) {
            return Ok(Some(stored.name().to_owned()));
        }
    }
    Ok(None)
}

fn is_controlled_by(object: &Value, uid: &str) -> bool {
    let owners = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
    owners.unwrap_or_default().iter().any(|owner| {
        owner.get("controller").and_then(Value::as_bool) == Some(true)
            && owner.str_at(&["uid"]) == Some(uid)
    })
}

fn resource(plural: &str) -> GroupVersionResource {
    GroupVersionResource::new(GROUP, VERSION, plural)
}

fn stored(
    registry: &Registry,
    plural: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    let found = registry.resource(&resource(plural));
    let found = found.and_then(|found| registry.peek(&found, namespace, name));
    Ok(found.map(|found| found.tree()).transpose()?)
}
