//! Bootstrap objects: created at start, and maintained from then on (BOOT-01).

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_kinds::bootstrap::{BootstrapObject, Step};
use pintle_meta::{Reason, Status, object, time};
use pintle_registry::Resource;
use pintle_registry::request::{Context, DeleteOptions, WriteOptions, granted};
use pintle_value::{Str, Value};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{Environment, SERVER, apply_status, body, target, until};

/// The field manager of the status of the default ServiceCIDR, the only object with an initial
/// status.
const STATUS_MANAGER: &str = "kubernetes-service-cidr-controller";
/// How often the objects are checked.
const INTERVAL: Duration = Duration::from_secs(60);
/// How often the objects with the server's address are checked (upstream: `EndpointInterval`).
const ADDRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Maintains the current objects until shutdown. If other tasks need the objects, call [`ensure`]
/// first.
pub async fn run(
    environment: Environment,
    objects: watch::Receiver<Arc<[BootstrapObject]>>,
    shutdown: impl Future<Output = ()>,
) {
    until(shutdown, async {
        tokio::join!(
            maintain(&environment, objects.clone(), is_address, ADDRESS_INTERVAL),
            maintain(&environment, objects.clone(), |object| !is_address(object), INTERVAL)
        );
    })
    .await;
}

/// Whether an object contains the server's address.
fn is_address(object: &BootstrapObject) -> bool {
    matches!(&*object.resource.resource, "services" | "endpoints" | "endpointslices")
}

/// Checks some of the objects at an interval, and when the set of objects changes.
async fn maintain(
    environment: &Environment,
    mut objects: watch::Receiver<Arc<[BootstrapObject]>>,
    is_one: fn(&BootstrapObject) -> bool,
    interval: Duration,
) {
    let select = |objects: &[BootstrapObject]| -> Arc<[BootstrapObject]> {
        objects.iter().filter(|object| is_one(object)).cloned().collect()
    };
    let mut selected = select(&objects.borrow_and_update());
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            Ok(()) = objects.changed() => selected = select(&objects.borrow_and_update()),
        }
        for status in ensure(environment, &selected).await {
            tracing::warn!(%status, "cannot create or update a bootstrap object");
        }
    }
}

/// Creates missing objects and restores changed ones; returns the failures.
///
/// Namespaces and the service CIDR come first, because other objects need them. All others are
/// written concurrently, so that they share the store's batches.
pub async fn ensure(environment: &Environment, objects: &Arc<[BootstrapObject]>) -> Vec<Status> {
    let is_first = |index: &usize| {
        matches!(objects[*index].resource.resource.as_str(), "namespaces" | "servicecidrs")
    };
    let (first, rest): (Vec<_>, Vec<_>) = (0..objects.len()).partition(is_first);
    let mut failures = Vec::new();
    for part in [first, rest] {
        // All steps are decided before the first is executed, because some depend on the stored
        // objects.
        let mut due = Vec::new();
        for index in part {
            let Some(resource) = environment.registry.resource(&objects[index].resource) else {
                continue;
            };
            match decide(environment, &resource, &objects[index]) {
                Ok(None) => {}
                Ok(Some((step, wanted))) => due.push((resource, wanted, step)),
                Err(status) => failures.push(status),
            }
        }
        let mut tasks = JoinSet::new();
        for (resource, wanted, step) in due {
            let environment = environment.clone();
            tasks.spawn(async move { execute(&environment, &resource, &wanted, step).await });
        }
        while let Some(done) = tasks.join_next().await {
            if let Ok(Err(status)) = done {
                failures.push(status);
            }
        }
    }
    failures
}

/// Returns the step that is due for an object, if any, and the object as it is to be written.
fn decide(
    environment: &Environment,
    resource: &Resource,
    wanted: &BootstrapObject,
) -> Result<Option<(Step, BootstrapObject)>, Status> {
    let stored = |namespace: &str, name: &str| {
        let stored = environment.registry.peek(resource, namespace, name);
        stored.map(|stored| resource.tree(&stored)).transpose()
    };
    let now = stored(object::namespace(&wanted.object), object::name(&wanted.object))?;
    let step = wanted.step(now.as_ref());
    if step == Step::Nothing {
        return Ok(None);
    }
    let mut wanted = wanted.clone();
    if step == Step::Create
        && let Some(name) = wanted.split_from()
        && let Some(earlier) = stored("", name)?
    {
        wanted.object = wanted.split(&earlier);
    }
    Ok(Some((step, wanted)))
}

async fn execute(
    environment: &Environment,
    resource: &Arc<Resource>,
    wanted: &BootstrapObject,
    step: Step,
) -> Result<(), Status> {
    let (namespace, name) = (object::namespace(&wanted.object), object::name(&wanted.object));
    let one = target(resource, namespace, name, "");
    let context = environment.context(SERVER);
    let options = options(wanted);
    match step {
        Step::Nothing => Ok(()),
        Step::Create => create(environment, resource, wanted, &context).await,
        Step::Update(state) => environment
            .registry
            .update(&one, &body(&state), &options, &context, &granted)
            .await
            .map(|_| ()),
        Step::Replace => {
            environment.registry.delete(&one, &DeleteOptions::default(), &context).await?;
            create(environment, resource, wanted, &context).await
        }
    }
}

/// Creates an object, then writes its status, which a create drops.
async fn create(
    environment: &Environment,
    resource: &Arc<Resource>,
    wanted: &BootstrapObject,
    context: &Context,
) -> Result<(), Status> {
    let (object, options) = (&wanted.object, options(wanted));
    let namespace = object::namespace(object);
    let collection = target(resource, namespace, "", "");
    let created = environment.registry.create(&collection, &body(object), &options, context).await;
    match created {
        Err(status) if status.reason == Some(Reason::AlreadyExists) => return Ok(()),
        other => other?,
    };
    let Some(status) = object.get("status") else { return Ok(()) };
    let now = time::format((environment.clock)().unix_micros);
    let conditions = status.get("conditions").and_then(Value::as_array).unwrap_or_default();
    let dated = conditions.iter().cloned().map(|mut condition| {
        condition.make_object().insert("lastTransitionTime", now.as_str());
        condition
    });
    let status = Value::from([("conditions", dated.collect::<Vec<_>>())]);
    let part = target(resource, namespace, object::name(object), "status");
    apply_status(environment, &part, status, STATUS_MANAGER).await
}

fn options(wanted: &BootstrapObject) -> WriteOptions {
    WriteOptions { field_manager: Str::const_new(wanted.manager()), ..WriteOptions::default() }
}
