//! The kinds about API servers: APIServices, storage versions, migrations, flow control.

use std::cmp::Ordering;

use pintle_registry::table::TableVariant;
use pintle_value::Value;

use super::column::Cell::{By, Int, IntOr, Text, TextOr};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, NAME_TEXT, string};
use super::read::{at, condition, int_at, is_true, items_at, str_at};
use super::text::{filled, first_few, qualified};
use super::{Columns, Kind};

const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind::new("apiregistration.k8s.io", "APIService", API_SERVICE)
        .with_variant(TableVariant { repeats_columns: true, null_rows: false }),
    Kind::new(FLOW_CONTROL, "FlowSchema", FLOW_SCHEMA).with_order(precedence),
    Kind::new(FLOW_CONTROL, "PriorityLevelConfiguration", PRIORITY_LEVEL_CONFIGURATION),
    Kind::new("internal.apiserver.k8s.io", "StorageVersion", STORAGE_VERSION),
    Kind::new("storagemigration.k8s.io", "StorageVersionMigration", STORAGE_VERSION_MIGRATION),
];

const API_SERVICE: Columns = &[
    NAME,
    string(
        "Service",
        By(service),
        Words("The reference to the service that hosts this API endpoint."),
    ),
    string("Available", By(available), Words("Whether this service is available.")),
    AGE,
];

const FLOW_SCHEMA: Columns = &[
    NAME,
    string(
        "PriorityLevel",
        Text("spec.priorityLevelConfiguration.name"),
        Field("flowcontrol.v1.PriorityLevelConfigurationReference", "name"),
    ),
    string(
        "MatchingPrecedence",
        Int("spec.matchingPrecedence"),
        Field("flowcontrol.v1.FlowSchemaSpec", "matchingPrecedence"),
    ),
    string(
        "DistinguisherMethod",
        TextOr("spec.distinguisherMethod.type", "<none>"),
        Field("flowcontrol.v1.FlowSchemaSpec", "distinguisherMethod"),
    ),
    AGE,
    string(
        "MissingPL",
        By(missing_priority_level),
        Words("references a broken or non-existent PriorityLevelConfiguration"),
    ),
];

const PRIORITY_LEVEL_CONFIGURATION: Columns = &[
    NAME,
    string(
        "Type",
        Text("spec.type"),
        Field("flowcontrol.v1.PriorityLevelConfigurationSpec", "type"),
    ),
    string(
        "NominalConcurrencyShares",
        IntOr("spec.limited.nominalConcurrencyShares", "<none>"),
        Field("flowcontrol.v1.LimitedPriorityLevelConfiguration", "nominalConcurrencyShares"),
    ),
    string(
        "Queues",
        IntOr("spec.limited.limitResponse.queuing.queues", "<none>"),
        Field("flowcontrol.v1.QueuingConfiguration", "queues"),
    ),
    string(
        "HandSize",
        IntOr("spec.limited.limitResponse.queuing.handSize", "<none>"),
        Field("flowcontrol.v1.QueuingConfiguration", "handSize"),
    ),
    string(
        "QueueLengthLimit",
        IntOr("spec.limited.limitResponse.queuing.queueLengthLimit", "<none>"),
        Field("flowcontrol.v1.QueuingConfiguration", "queueLengthLimit"),
    ),
    AGE,
];

const STORAGE_VERSION: Columns = &[
    NAME,
    string(
        "CommonEncodingVersion",
        TextOr("status.commonEncodingVersion", "<unset>"),
        Field("apiserverinternal.v1alpha1.StorageVersionStatus", "commonEncodingVersion"),
    ),
    string(
        "StorageVersions",
        By(storage_versions),
        Field("apiserverinternal.v1alpha1.StorageVersionStatus", "storageVersions"),
    ),
    AGE,
];

const STORAGE_VERSION_MIGRATION: Columns = &[
    string("Name", Text("metadata.name"), NAME_TEXT),
    string("Resource", By(migrated), Words("GroupResource to migrate")),
    string("Status", By(migration_status), Words("Status of the migration")),
];

fn service(api_service: &Value) -> Value {
    match at(api_service, "spec.service") {
        Some(service) => {
            format!("{}/{}", str_at(service, "namespace"), str_at(service, "name")).into()
        }
        None => "Local".into(),
    }
}

fn available(api_service: &Value) -> Value {
    let Some(condition) = condition(api_service, "Available") else { return "Unknown".into() };
    match (str_at(condition, "status"), str_at(condition, "reason")) {
        (status @ "True", _) | (status, "") => status.into(),
        (status, reason) => format!("{status} ({reason})").into(),
    }
}

fn missing_priority_level(flow_schema: &Value) -> Value {
    condition(flow_schema, "Dangling").map_or("?", |condition| str_at(condition, "status")).into()
}

/// The order in which flow schemas are tried.
fn precedence(a: &Value, b: &Value) -> Ordering {
    let key = |schema| (int_at(schema, "spec.matchingPrecedence"), str_at(schema, "metadata.name"));
    key(a).cmp(&key(b))
}

fn storage_versions(storage_version: &Value) -> Value {
    let texts = items_at(storage_version, "status.storageVersions").iter().map(|server| {
        format!("{}={}", str_at(server, "apiServerID"), str_at(server, "encodingVersion"))
    });
    filled(&first_few(texts), "<unset>").into()
}

fn migrated(migration: &Value) -> Value {
    let resource = at(migration, "spec.resource").unwrap_or(&Value::Null);
    qualified(str_at(resource, "resource"), str_at(resource, "group")).into()
}

fn migration_status(migration: &Value) -> Value {
    let mut conditions = items_at(migration, "status.conditions").iter();
    let last = conditions.rfind(|condition| {
        is_true(condition)
            && matches!(str_at(condition, "type"), "Running" | "Failed" | "Succeeded")
    });
    last.map_or("Unknown", |condition| str_at(condition, "type")).into()
}
