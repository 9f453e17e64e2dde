//! The namespace controller: deletes the content of terminating namespaces, then the namespaces
//! (KCM-02).
//!
//! A terminating namespace is reconciled at once, and again with growing pauses until it is empty:
//! objects with finalizers or grace periods remain for a while. The namespace's conditions say what
//! remains.

mod conditions;
mod content;
mod extensions;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_meta::{Status, object};
use pintle_registry::request::{DeleteOptions, Propagation, WriteOptions, granted};
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, work};
use crate::{Environment, body, target, until};

const USER: &str = "system:serviceaccount:kube-system:namespace-controller";
const FINALIZER: &str = "kubernetes";

/// Finishes the deletion of namespaces until shutdown. It waits for `delay` first, so that another
/// controller can finish the deletion instead.
pub async fn run(environment: Environment, delay: Duration, shutdown: impl Future<Output = ()>) {
    let Some(namespaces) = environment.resource("", "v1", "namespaces") else { return };
    let namespaces = Namespaces { environment: &environment, namespaces, delay };
    until(shutdown, work(&environment, &namespaces)).await;
}

struct Namespaces<'e> {
    environment: &'e Environment,
    namespaces: Arc<Resource>,
    delay: Duration,
}

impl Reconciler for Namespaces<'_> {
    fn purpose(&self) -> &'static str {
        "finish the deletion of a namespace"
    }

    fn queue(&self) -> &'static str {
        "namespace"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.namespaces, if_terminating)]
    }

    fn delay(&self) -> Duration {
        self.delay
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(finish(self.environment, &self.namespaces, name))
    }
}

fn if_terminating(namespace: &Object) -> Option<Str> {
    // An unreadable namespace is enqueued, so that its error is reported.
    let terminates = namespace.tree().map_or(true, |tree| object::is_terminating(&tree));
    terminates.then(|| namespace.name().into())
}

/// The remaining content of a namespace.
#[derive(Debug, Default)]
struct Left {
    /// The number of objects of each resource: `configmaps.`, `deployments.apps`.
    objects: BTreeMap<String, usize>,
    /// The number of objects with each finalizer.
    finalizers: BTreeMap<String, usize>,
    /// The errors.
    failures: Vec<String>,
    /// The group versions whose servers do not answer, so that their content is unknown.
    silent: Vec<String>,
}

impl Left {
    /// Whether nothing remains, nothing failed, and every server answered.
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.failures.is_empty() && self.silent.is_empty()
    }

    /// Counts the finalizers of a remaining object.
    fn count_finalizers(&mut self, object: &Value) {
        for finalizer in object::finalizers(object) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
}

/// Tries once to finish the deletion of a namespace.
async fn finish(
    environment: &Environment,
    namespaces: &Arc<Resource>,
    name: &str,
) -> Result<Progress, Status> {
    let current = || {
        let stored = environment.registry.peek(namespaces, "", name);
        stored.map(|stored| stored.tree()).transpose()
    };
    let Some(namespace) = current()?.filter(is_ours) else { return Ok(Progress::Done) };
    let left = content::remove(environment, name).await;
    // The conditions need no update if the next write removes the namespace.
    if !left.is_empty() || has_other_finalizers(&namespace) {
        write_conditions(environment, namespaces, namespace, &left).await?;
    }
    if !left.is_empty() {
        return Ok(Progress::Waiting);
    }
    match current()?.filter(is_ours) {
        Some(namespace) => finalize(environment, namespaces, namespace).await?,
        None => return Ok(Progress::Done),
    }
    Ok(Progress::Done)
}

/// Returns the options of the deletions: dependents are deleted in the background.
fn deletion() -> DeleteOptions {
    DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() }
}

/// Whether a namespace is terminating and has this controller's finalizer.
fn is_ours(namespace: &Value) -> bool {
    object::is_terminating(namespace)
        && finalizers(namespace).any(|f| f.as_str() == Some(FINALIZER))
}

/// Whether a namespace has other finalizers, in its spec or its metadata.
fn has_other_finalizers(namespace: &Value) -> bool {
    finalizers(namespace).any(|f| f.as_str() != Some(FINALIZER))
        || object::finalizers(namespace).next().is_some()
}

fn finalizers(namespace: &Value) -> impl Iterator<Item = &Value> {
    let list = namespace.at(&["spec", "finalizers"]).and_then(Value::as_array);
    list.unwrap_or_default().iter()
}

/// Writes what remains to the namespace's conditions, if they change.
async fn write_conditions(
    environment: &Environment,
    namespaces: &Arc<Resource>,
    mut namespace: Value,
    left: &Left,
) -> Result<(), Status> {
    let context = environment.context(USER);
    let status = namespace.object_entry("status");
    let before = status.get("conditions").and_then(Value::as_array).unwrap_or_default();
    let Some(conditions) = conditions::update(before, left, context.now) else { return Ok(()) };
    status.insert("conditions", conditions);
    let part = target(namespaces, "", object::name(&namespace), "status");
    let (body, options) = (body(&namespace), WriteOptions::default());
    environment.registry.update(&part, &body, &options, &context, &granted).await.map(|_| ())
}

/// Removes this controller's finalizer; removing the last one deletes the namespace.
async fn finalize(
    environment: &Environment,
    namespaces: &Arc<Resource>,
    mut namespace: Value,
) -> Result<(), Status> {
    let others: Vec<Value> =
        finalizers(&namespace).filter(|f| f.as_str() != Some(FINALIZER)).cloned().collect();
    namespace.object_entry("spec").insert("finalizers", others);
    let part = target(namespaces, "", object::name(&namespace), "finalize");
    let (body, options) = (body(&namespace), WriteOptions::default());
    let context = environment.context(USER);
    environment.registry.update(&part, &body, &options, &context, &granted).await.map(|_| ())
}
