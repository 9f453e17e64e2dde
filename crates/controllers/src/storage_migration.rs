//! Migrations of stored objects: `storagemigration.k8s.io` StorageVersionMigration. Each object of a resource
//! is written by an apply that says nothing, so that the store keeps it in the form in which objects are kept
//! now; a write that changes nothing is committed only where the stored form differs.
//!
//! Of the migrations of a resource one runs at a time, the oldest first. One step is made at a time, and each
//! is written into the migration's status, so that another server goes on where this one stopped.
//!
//! Upstream: pkg/controller/storageversionmigrator, whose three controllers share one queue here.

mod conditions;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_meta::{Status, object, time, version};
use pintle_registry::request::{Encoding, PatchType, WriteOptions, granted};
use pintle_registry::{Object, Resource, Verb};
use pintle_value::{Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, work};
use crate::{Environment, body, target, until};
use conditions::{has, is_terminal, set};

const USER: &str = "system:serviceaccount:kube-system:storage-version-migrator-controller";
/// Who applies what says nothing, and therefore owns nothing.
const MANAGER: &str = "storage-version-migrator-controller";
/// Who owns what is said of a migration in a custom resource definition.
const RUNNER: &str = "migration-runner-controller";
/// How long a resource may be missing that may have been defined just now, in microseconds.
const GRACE: i64 = 60 * time::SECOND;
/// The pause before it is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// What must be possible with a resource.
const VERBS: [(Verb, &str); 3] =
    [(Verb::Update, "update"), (Verb::Patch, "patch"), (Verb::List, "list")];

/// Migrates until told to stop.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    // It is served only with its feature gate.
    let migrations =
        environment.resource("storagemigration.k8s.io", "v1beta1", "storageversionmigrations");
    let definitions =
        environment.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let Some((migrations, definitions)) = migrations.zip(definitions) else { return };
    let migrator = Migrator { environment: &environment, migrations, definitions };
    until(shutdown, work(&environment, &migrator)).await;
}

/// Reconciles one resource at a time: the migrations of its objects.
struct Migrator<'e> {
    environment: &'e Environment,
    migrations: Arc<Resource>,
    definitions: Arc<Resource>,
}

impl Reconciler for Migrator<'_> {
    fn purpose(&self) -> &'static str {
        "migrate stored objects"
    }

    fn queue(&self) -> &'static str {
        MANAGER
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.migrations, its_resource)]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.step(name))
    }
}

/// The resource that a migration is about, as definitions are named: `pods.`, `things.example.com`.
fn its_resource(migration: &Object) -> Option<Str> {
    // One that cannot be read migrates nothing; whoever reads it hears of that.
    migration.tree().ok().map(|tree| about(&tree).into())
}

fn about(migration: &Value) -> String {
    let text = |member| migration.str_at(&["spec", "resource", member]).unwrap_or_default();
    format!("{}.{}", text("resource"), text("group"))
}

impl Migrator<'_> {
    /// Makes the next step of a resource's migrations. What it writes enqueues the resource again.
    async fn step(&self, resource: &str) -> Result<Progress, Status> {
        let all = self.environment.registry.objects(&self.migrations);
        let mut migrations = Vec::new();
        for migration in
            all.filter(|migration| its_resource(migration).as_deref() == Some(resource))
        {
            migrations.push(self.migrations.tree(&migration)?);
        }
        let age = |migration: &Value| {
            let created = object::text(migration, "creationTimestamp").to_owned();
            (created, object::name(migration).to_owned())
        };
        migrations.sort_by_key(age);
        let find = |is: fn(&Value) -> bool| migrations.iter().find(|migration| is(migration));
        if let Some(over) = find(|migration| has(migration, "Running") && is_terminal(migration)) {
            return self.finish(resource, over.clone()).await;
        }
        if let Some(running) = find(|migration| has(migration, "Running")) {
            return self.migrate(running.clone()).await;
        }
        match find(|migration| !is_terminal(migration)) {
            Some(next) => self.begin(resource, next.clone()).await,
            None => Ok(Progress::Done),
        }
    }

    /// Lets a migration run, and says so in the definition of a custom resource.
    async fn begin(&self, resource: &str, mut migration: Value) -> Result<Progress, Status> {
        if let Some(definition) = self.definition(resource)? {
            let words = format!("Migration {} is running", object::name(&migration));
            let condition = self.of_definition(&definition, "True", "MigrationRunning", &words);
            self.tell_definition(&definition, condition, None).await?;
        }
        let now = self.now();
        set(&mut migration, "Running", ("MigrationRunning", "The migration is running"), &now);
        self.write_status(&migration).await
    }

    /// Writes every object that is as old as the migration, or older.
    async fn migrate(&self, mut migration: Value) -> Result<Progress, Status> {
        let Some(resource) = self.served(&migration) else {
            let created = time::parse(object::text(&migration, "creationTimestamp")).unwrap_or(0);
            if self.environment.until(created.saturating_add(GRACE)).is_some() {
                return Ok(Progress::After(LOOK_AGAIN));
            }
            return self.fail(migration, "resource does not exist in discovery").await;
        };
        if !VERBS.iter().all(|(verb, _)| resource.verbs.contains(verb)) {
            let gvr = &resource.resource;
            let named = format!("{}, Resource={}", resource.api_version(), gvr.resource);
            let verbs = VERBS.map(|(_, name)| name).join(" ");
            let words =
                format!("resource {named:?} does not support discovery operations: [{verbs}]");
            return self.fail(migration, &words).await;
        }
        let said = migration.str_at(&["status", "resourceVersion"]).unwrap_or_default();
        if said.is_empty() {
            let head = self.environment.registry.head();
            let checkpoint = head.revision.to_string();
            migration.object_entry("status").insert("resourceVersion", checkpoint);
            return self.write_status(&migration).await;
        }
        let Ok(checkpoint) = said.parse::<u64>() else {
            let words = format!("migration encountered unhandled error: {said:?} is no revision");
            return self.fail(migration, &words).await;
        };
        let objects = self.environment.registry.objects(&resource);
        for object in objects.filter(|object| object.revision.0 <= checkpoint) {
            match self.write_again(&resource, &object).await {
                // It was written or deleted meanwhile.
                Err(status) if matches!(status.code, 404 | 409) => {}
                // The rest is tried again with it.
                Err(status) if matches!(status.code, 429 | 500 | 503 | 504) => return Err(status),
                Err(status) => {
                    let words = format!("migration encountered unhandled error: {status}");
                    return self.fail(migration, &words).await;
                }
                Ok(()) => {}
            }
        }
        let now = self.now();
        set(&mut migration, "Succeeded", ("StorageVersionMigrationSucceeded", ""), &now);
        self.write_status(&migration).await
    }

    /// Writes an object by an apply that says nothing, if it is still the same.
    async fn write_again(&self, resource: &Arc<Resource>, object: &Object) -> Result<(), Status> {
        let registry = &self.environment.registry;
        let uid = resource.tree(object).map(|tree| object::uid(&tree).to_owned())?;
        // With both, what was deleted and made again is a conflict, and what is gone is not made again.
        let metadata = Value::from([
            ("name", Value::from(object.name())),
            ("uid", uid.into()),
            ("resourceVersion", object.revision.to_string().into()),
        ]);
        let configuration = Value::from([
            ("apiVersion", Value::from(resource.api_version())),
            ("kind", resource.kind.clone().into()),
            ("metadata", metadata),
        ]);
        let one = target(resource, object.namespace(), object.name(), "");
        let options =
            WriteOptions { field_manager: Str::const_new(MANAGER), ..WriteOptions::default() };
        let (patch, kind) = (body(&configuration).bytes, PatchType::Apply(Encoding::Json));
        let context = self.environment.context(USER);
        registry.patch(&one, &patch, kind, &options, &context, &granted).await.map(|_| ())
    }

    async fn fail(&self, mut migration: Value, words: &str) -> Result<Progress, Status> {
        let now = self.now();
        set(&mut migration, "Failed", ("StorageVersionMigrationFailed", words), &now);
        self.write_status(&migration).await
    }

    /// Ends a migration that succeeded or failed, and lets go of what a custom resource's definition says of
    /// earlier versions.
    async fn finish(&self, resource: &str, mut migration: Value) -> Result<Progress, Status> {
        if let Some(definition) = self.definition(resource)? {
            let is_success = has(&migration, "Succeeded");
            let is_unchanged = conditions::observed(&definition, "StorageMigrating")
                == Some(object::generation(&definition));
            let (reason, words) = match (is_success, is_unchanged) {
                (true, true) => (
                    "MigrationSucceeded",
                    "The migration has succeeded and the stored versions have been updated",
                ),
                (true, false) => (
                    "MigrationSucceeded",
                    "The migration has succeeded but the stored versions have not been updated due \
                     to a generation mismatch",
                ),
                (false, _) => ("MigrationFailed", "The migration has failed"),
            };
            let condition = self.of_definition(&definition, "False", reason, words);
            // Upstream drops the earlier versions after a migration that failed, too, although objects may
            // still be stored in them; here they stay.
            let stored = stored_version(&definition).filter(|_| is_success && is_unchanged);
            self.tell_definition(&definition, condition, stored).await?;
        }
        let (generation, now) = (object::generation(&migration), self.now());
        conditions::complete(&mut migration, generation, &now);
        self.write_status(&migration).await
    }

    /// The resource whose objects are to be written, in the version that clients prefer.
    fn served(&self, migration: &Value) -> Option<Arc<Resource>> {
        let text = |member| migration.str_at(&["spec", "resource", member]).unwrap_or_default();
        let (_, all) = self.environment.registry.resources();
        let is_it = |r: &&Arc<Resource>| {
            (r.resource.group.as_str(), r.resource.resource.as_str())
                == (text("group"), text("resource"))
        };
        let of_it = all.iter().filter(is_it);
        of_it.min_by(|a, b| version::cmp(&a.resource.version, &b.resource.version)).cloned()
    }

    /// The definition of a custom resource.
    fn definition(&self, resource: &str) -> Result<Option<Value>, Status> {
        let found = self.environment.registry.peek(&self.definitions, "", resource);
        found.map(|found| self.definitions.tree(&found)).transpose()
    }

    fn of_definition(&self, definition: &Value, status: &str, reason: &str, words: &str) -> Value {
        Value::from([
            ("type", Value::from("StorageMigrating")),
            ("status", status.into()),
            ("lastTransitionTime", self.now().into()),
            ("reason", reason.into()),
            ("message", words.into()),
            ("observedGeneration", object::generation(definition).into()),
        ])
    }

    /// Says in a definition, if it is still the same, how its migration is, and which versions are stored.
    async fn tell_definition(
        &self,
        definition: &Value,
        condition: Value,
        stored: Option<Str>,
    ) -> Result<(), Status> {
        let mut status = Value::from([("conditions", Value::Array(vec![condition]))]);
        if let Some(version) = stored {
            status.make_object().insert("storedVersions", vec![Value::from(version)]);
        }
        let (name, revision) = (object::name(definition), object::resource_version(definition));
        let metadata = Value::from([("name", name), ("resourceVersion", revision)]);
        let configuration = Value::from([
            ("apiVersion", Value::from(self.definitions.api_version())),
            ("kind", self.definitions.kind.clone().into()),
            ("metadata", metadata),
            ("status", status),
        ]);
        let field_manager = Str::const_new(RUNNER);
        let options = WriteOptions { field_manager, force: true, ..WriteOptions::default() };
        let (patch, kind) = (body(&configuration).bytes, PatchType::Apply(Encoding::Json));
        let part = target(&self.definitions, "", name, "status");
        let context = self.environment.context(USER);
        let registry = &self.environment.registry;
        registry.patch(&part, &patch, kind, &options, &context, &granted).await.map(|_| ())
    }

    async fn write_status(&self, migration: &Value) -> Result<Progress, Status> {
        let part = target(&self.migrations, "", object::name(migration), "status");
        let (options, context) = (WriteOptions::default(), self.environment.context(USER));
        let registry = &self.environment.registry;
        match registry.update(&part, &body(migration), &options, &context, &granted).await {
            Err(status) if status.code != 404 => Err(status),
            Ok(_) | Err(_) => Ok(Progress::Done),
        }
    }

    fn now(&self) -> String {
        time::format((self.environment.clock)().unix_micros)
    }
}

/// The version in which new objects of a definition are stored.
fn stored_version(definition: &Value) -> Option<Str> {
    let versions = definition.at(&["spec", "versions"])?.as_array()?;
    let stored =
        versions.iter().find(|version| version.get("storage") == Some(&Value::Bool(true)))?;
    stored.str_at(&["name"]).map(Str::from)
}
