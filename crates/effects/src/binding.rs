//! Bindings assign a pod to a node (upstream: `BindingREST`).

use pintle_meta::field::{self, Error};
use pintle_meta::{GroupResource, Reason, Status, object};
use pintle_registry::action::{Action, Performed, Request};
use pintle_registry::results::ResponseBody;
use pintle_value::{Map, Path, Value};

use crate::pods;

/// Assigns a pod to a node: `pods/binding`, and the older `bindings`.
pub(crate) struct Bind;

impl Action for Bind {
    fn type_name(&self) -> &'static str {
        "io.k8s.api.core.v1.Binding"
    }

    fn perform<'a>(&'a self, request: Request<'a>) -> Performed<'a> {
        Box::pin(async move {
            let Request { registry, target, posted, options, context } = request;
            pods::same_name(target, &posted, "Binding")?;
            check(&posted)?;
            let pod = pods::pod(&pods::pods(registry)?, &target.namespace, object::name(&posted));
            let assigned = |pod: &mut Value| assign(pod, &posted, context.now);
            registry.amend(&pod, options.dry_run, context, assigned).await?;
            Ok(ResponseBody::Status(Status::success(201)))
        })
    }
}

/// Checks a binding. Like upstream, the error is the bare list of problems, without a reason.
fn check(binding: &Value) -> Result<(), Status> {
    let target = Path::new("target");
    let of = |member: &str| binding.str_at(&["target", member]).unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(of("kind"), "" | "Node") {
        let supported = ["Node", "<empty>"];
        errors.push(Error::not_supported(&target.field("kind"), &of("kind").into(), &supported));
    }
    if of("name").is_empty() {
        errors.push(Error::required(&target.field("name"), ""));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::failure(Reason::Unknown, field::aggregate(&errors)))
}

fn assign(
    pod: &mut Value,
    binding: &Value,
    now: pintle_registry::request::Now,
) -> Result<(), Status> {
    let name = object::name(pod).to_owned();
    let refuse =
        |why: String| Err(Status::conflict(&GroupResource::new("", "pods/binding"), &name, &why));
    let preconditions = [
        ("UID", object::uid(binding), object::uid(pod)),
        ("ResourceVersion", object::resource_version(binding), object::resource_version(pod)),
    ];
    for (what, required, stored) in preconditions {
        if !required.is_empty() && required != stored {
            let pods = GroupResource::new("", "pods");
            let key = format!("/registry/pods/{}/{name}", object::namespace(pod));
            return Err(Status::failed_precondition(&pods, &name, &key, (what, required, stored)));
        }
    }
    if object::is_terminating(pod) {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = pod.str_at(&["spec", "nodeName"]).unwrap_or_default();
    if !node.is_empty() {
        return refuse(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gates = pod.at(&["spec", "schedulingGates"]).and_then(Value::as_array);
    if !gates.unwrap_or_default().is_empty() {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let node = binding.str_at(&["target", "name"]).unwrap_or_default();
    pod.object_entry("spec").insert("nodeName", node);
    // The nomination was a hint for the scheduler, which has now decided.
    pod.object_entry("status").remove("nominatedNodeName");
    copy(pod, "annotations", object::annotations(binding));
    copy(pod, "labels", object::labels(binding));
    pods::set_condition(pod, &[("type", "PodScheduled"), ("status", "True")], now);
    Ok(())
}

/// Copies annotations or labels of the binding (`from`) to the pod's `member`.
fn copy(pod: &mut Value, member: &str, from: Option<&Map>) {
    let Some(from) = from.filter(|from| !from.is_empty()) else { return };
    let to = object::metadata_mut(pod).entry_object(member);
    for (key, value) in from.iter() {
        to.insert(key.clone(), value.clone());
    }
}
