//! The storage version migration controller: rewrites the stored objects of a resource in the
//! current storage version (`storagemigration.k8s.io` StorageVersionMigration).
//!
//! It applies an empty configuration to each object. An apply that changes nothing is committed
//! only if the stored bytes are not in the current form.
//!
//! The oldest unfinished migration of a resource runs first, one at a time. Each step is recorded
//! in the migration's status, so that another server can continue it.
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
use conditions::{is_terminal, is_true, set};

const USER: &str = "system:serviceaccount:kube-system:storage-version-migrator-controller";
/// The field manager of the empty applies; it owns no fields.
const MANAGER: &str = "storage-version-migrator-controller";
/// The field manager of the migration's condition in a CustomResourceDefinition.
const DEFINITION_MANAGER: &str = "migration-runner-controller";
/// How long after the creation of a migration its resource may be missing, in microseconds: its
/// definition may be new.
const GRACE: i64 = 60 * time::SECOND;
/// The pause between lookups of a missing resource.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(2);
/// The verbs that a resource must support.
const VERBS: [(Verb, &str); 3] =
    [(Verb::Update, "update"), (Verb::Patch, "patch"), (Verb::List, "list")];

/// Migrates until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    // The resource is served only with its feature gate.
    let migrations =
        environment.resource("storagemigration.k8s.io", "v1beta1", "storageversionmigrations");
    let definitions =
        environment.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let Some((migrations, definitions)) = migrations.zip(definitions) else { return };
    let migrator = Migrator { environment: &environment, migrations, definitions };
    until(shutdown, work(&environment, &migrator)).await;
}

/// Reconciles the migrations of one resource.
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
        vec![Source::new(&self.migrations, queue_name)]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.step(name))
    }
}

/// The resource of a migration, named like a CustomResourceDefinition: `pods.`,
/// `things.example.com`.
fn queue_name(migration: &Object) -> Option<Str> {
    // An unreadable migration is ignored; clients that read it get the error.
    migration.tree().ok().map(|tree| resource_of(&tree).into())
}

fn resource_of(migration: &Value) -> String {
    let text = |member| migration.str_at(&["spec", "resource", member]).unwrap_or_default();
    format!("{}.{}", text("resource"), text("group"))
}

impl Migrator<'_> {
    /// Executes the next step of a resource's migrations. Writing the status enqueues the resource
    /// again.
    async fn step(&self, resource: &str) -> Result<Progress, Status> {
        let all = self.environment.registry.objects(&self.migrations);
        let mut migrations = Vec::new();
        for migration in all.filter(|migration| queue_name(migration).as_deref() == Some(resource))
        {
            migrations.push(self.migrations.tree(&migration)?);
        }
        let age = |migration: &Value| {
            let created = object::text(migration, "creationTimestamp").to_owned();
            (created, object::name(migration).to_owned())
        };
        migrations.sort_by_key(age);
        let find = |is: fn(&Value) -> bool| migrations.iter().find(|migration| is(migration));
        if let Some(ended) =
            find(|migration| is_true(migration, "Running") && is_terminal(migration))
        {
            return self.finish(resource, ended.clone()).await;
        }
        if let Some(running) = find(|migration| is_true(migration, "Running")) {
            return self.migrate(running.clone()).await;
        }
        match find(|migration| !is_terminal(migration)) {
            Some(next) => self.begin(resource, next.clone()).await,
            None => Ok(Progress::Done),
        }
    }

    /// Starts a migration, and reports it in the CustomResourceDefinition of the resource, if
    /// there is one.
    async fn begin(&self, resource: &str, mut migration: Value) -> Result<Progress, Status> {
        if let Some(definition) = self.definition(resource)? {
            let words = format!("Migration {} is running", object::name(&migration));
            let condition =
                self.definition_condition(&definition, "True", "MigrationRunning", &words);
            self.apply_definition_status(&definition, condition, None).await?;
        }
        let now = self.now();
        set(&mut migration, "Running", ("MigrationRunning", "The migration is running"), &now);
        self.write_status(&migration).await
    }

    /// Rewrites every object that is not newer than the migration's checkpoint.
    async fn migrate(&self, mut migration: Value) -> Result<Progress, Status> {
        let Some(resource) = self.served(&migration) else {
            let created = time::parse(object::text(&migration, "creationTimestamp")).unwrap_or(0);
            if self.environment.until(created.saturating_add(GRACE)).is_some() {
                return Ok(Progress::After(LOOKUP_INTERVAL));
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
        let recorded = migration.str_at(&["status", "resourceVersion"]).unwrap_or_default();
        if recorded.is_empty() {
            let head = self.environment.registry.head();
            let checkpoint = head.revision.to_string();
            migration.object_entry("status").insert("resourceVersion", checkpoint);
            return self.write_status(&migration).await;
        }
        let Ok(checkpoint) = recorded.parse::<u64>() else {
            let words =
                format!("migration encountered unhandled error: {recorded:?} is no revision");
            return self.fail(migration, &words).await;
        };
        let objects = self.environment.registry.objects(&resource);
        for object in objects.filter(|object| object.revision.0 <= checkpoint) {
            match self.rewrite(&resource, &object).await {
                // Another write has stored the object in the current form, or deleted it.
                Err(status) if matches!(status.code, 404 | 409) => {}
                // The step is retried with the remaining objects.
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

    /// Applies an empty configuration to an object, if it is unchanged.
    async fn rewrite(&self, resource: &Arc<Resource>, object: &Object) -> Result<(), Status> {
        let registry = &self.environment.registry;
        let uid = resource.tree(object).map(|tree| object::uid(&tree).to_owned())?;
        // With both preconditions, a recreated object is a conflict, and a deleted one is not
        // created again.
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

    /// Ends a migration that succeeded or failed. After a success, the definition of a custom
    /// resource lists only the current version as stored, unless the definition has changed since
    /// the migration began.
    async fn finish(&self, resource: &str, mut migration: Value) -> Result<Progress, Status> {
        if let Some(definition) = self.definition(resource)? {
            let is_success = is_true(&migration, "Succeeded");
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
            let condition = self.definition_condition(&definition, "False", reason, words);
            // Upstream also drops the earlier versions after a failed migration, although objects
            // may still be stored in them. Here they stay.
            let stored = stored_version(&definition).filter(|_| is_success && is_unchanged);
            self.apply_definition_status(&definition, condition, stored).await?;
        }
        let (generation, now) = (object::generation(&migration), self.now());
        conditions::complete(&mut migration, generation, &now);
        self.write_status(&migration).await
    }

    /// The resource whose objects are rewritten, in its preferred version.
    fn served(&self, migration: &Value) -> Option<Arc<Resource>> {
        let text = |member| migration.str_at(&["spec", "resource", member]).unwrap_or_default();
        let (_, all) = self.environment.registry.resources();
        let is_resource = |r: &&Arc<Resource>| {
            (r.resource.group.as_str(), r.resource.resource.as_str())
                == (text("group"), text("resource"))
        };
        let versions = all.iter().filter(is_resource);
        versions.min_by(|a, b| version::cmp(&a.resource.version, &b.resource.version)).cloned()
    }

    /// The CustomResourceDefinition of a resource; `None` for a built-in one.
    fn definition(&self, resource: &str) -> Result<Option<Value>, Status> {
        let found = self.environment.registry.peek(&self.definitions, "", resource);
        found.map(|found| self.definitions.tree(&found)).transpose()
    }

    fn definition_condition(
        &self,
        definition: &Value,
        status: &str,
        reason: &str,
        words: &str,
    ) -> Value {
        Value::from([
            ("type", Value::from("StorageMigrating")),
            ("status", status.into()),
            ("lastTransitionTime", self.now().into()),
            ("reason", reason.into()),
            ("message", words.into()),
            ("observedGeneration", object::generation(definition).into()),
        ])
    }

    /// Writes the migration's condition and the stored versions to a definition's status, if the
    /// definition is unchanged.
    async fn apply_definition_status(
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
        let field_manager = Str::const_new(DEFINITION_MANAGER);
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
