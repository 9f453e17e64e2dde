//! Converts a definition to resources, one for each served version.

use std::collections::HashSet;
use std::sync::Arc;

use pintle_meta::{GroupVersionKind, GroupVersionResource, version};
use pintle_registry::table::Printer;
use pintle_registry::webhook::Caller;
use pintle_registry::{
    Definer, Deprecation, Etcd, EtcdForm, FieldText, ResourceDefinition, ScalePaths, ScaleVersion,
    Scope, SelectableField, Storage, Subresource, SubresourceBehaviour, Verb,
};
use pintle_value::{Str, Value};

use crate::built_in::BuiltIn;
use crate::columns::Columns;
use crate::definition::{Crd, Version};
use crate::json_path::JsonPath;
use crate::openapi;
use crate::schemas::{Schemas, Source, members, type_name};
use crate::storage::{Conversion, VersionConverter};
use crate::strategy::Custom;
use crate::structural::table;
use crate::webhook::Webhook;

/// The maximum number of selectable fields that all versions of a definition list together, if each
/// version lists those of all others. A definition can have thousands of versions.
const LISTED_FIELDS_MAX: usize = 4_096;

/// The resources of a definition under its accepted names; none if a built-in resource has its
/// name, or a built-in resource of its group is enabled.
pub fn resources(
    crd: &Value,
    built_in: &BuiltIn,
    source: Source,
    caller: Arc<dyn Caller>,
) -> Vec<ResourceDefinition> {
    let crd = Crd(crd);
    if built_in.answers_for(crd.group()) {
        return Vec::new();
    }
    let Some(shared) = shared(crd, built_in, source, caller) else { return Vec::new() };
    let served = crd.versions().filter(|version| version.is_served());
    served.filter_map(|version| shared.resource(version)).collect()
}

/// The resource of a definition's storage version, whether it is served or not: all objects are
/// stored in this version. `None` if a built-in resource has its name.
pub fn storage_resource(
    crd: &Value,
    built_in: &BuiltIn,
    source: Source,
    caller: Arc<dyn Caller>,
) -> Option<ResourceDefinition> {
    let crd = Crd(crd);
    shared(crd, built_in, source, caller)?.resource(crd.storage_version()?)
}

fn shared<'a>(
    crd: Crd<'a>,
    built_in: &BuiltIn,
    source: Source,
    caller: Arc<dyn Caller>,
) -> Option<Shared<'a>> {
    if built_in.has(crd.group(), crd.names().plural()) {
        return None;
    }
    let storage = crd.storage_version()?;
    let kind = crd.accepted_names().kind();
    let schemas = Arc::new(Schemas::new(crd, source.clone()));
    let tables = crd.versions().map(|version| {
        let (schemas, name) = (schemas.clone(), Str::from(version.name()));
        let type_name = type_name(crd.group(), version.name(), kind);
        (name.clone(), Arc::new(table::schema(move || schemas.structure(&name), type_name)))
    });
    Some(Shared {
        crd,
        storage_kind: GroupVersionKind::new(crd.group(), storage.name(), kind),
        collection: crd.collection().into(),
        fields: fields(crd),
        conversion: Webhook::of(crd, caller).map_or(Conversion::None, Conversion::Webhook).into(),
        tables: Arc::new(tables.collect()),
        schemas,
        source,
        definer: Arc::new(crd.definer()),
    })
}

/// The parts that a definition's versions share.
struct Shared<'a> {
    crd: Crd<'a>,
    storage_kind: GroupVersionKind,
    collection: Arc<str>,
    /// The selectable fields of all versions: versions share a collection, and so its index. Empty
    /// if there are too many.
    fields: Vec<Vec<Str>>,
    conversion: Arc<Conversion>,
    tables: Arc<Vec<(Str, Arc<pintle_schema::Schema>)>>,
    schemas: Arc<Schemas>,
    source: Source,
    definer: Arc<Definer>,
}

impl Shared<'_> {
    fn resource(&self, version: Version<'_>) -> Option<ResourceDefinition> {
        let (crd, names) = (self.crd, self.crd.accepted_names());
        let (_, schema) = self.tables.iter().find(|(name, _)| name == version.name())?;
        let own = GroupVersionKind::new(crd.group(), version.name(), names.kind());
        let converter = VersionConverter {
            version: version.name().into(),
            storage_version: self.storage_kind.version.clone(),
            group: crd.group().into(),
            schemas: self.schemas.clone(),
            tables: self.tables.clone(),
            conversion: self.conversion.clone(),
        };
        let scale = version.scale().and_then(scale);
        let columns = Columns::read(version.list("additionalPrinterColumns"));
        let printer: Arc<dyn Printer> = Arc::new(columns);
        Some(ResourceDefinition {
            // The plural name is that of the spec; the accepted name differs only for a short time.
            resource: GroupVersionResource::new(crd.group(), version.name(), crd.names().plural()),
            kind: names.kind().into(),
            list_kind: names.list_kind().into(),
            singular: names.singular().into(),
            scope: if crd.is_namespaced() { Scope::Namespaced } else { Scope::Cluster },
            verbs: VERBS.to_vec(),
            short_names: names.short_names(),
            categories: names.categories(),
            storage_kind: self.storage_kind.clone(),
            schema: schema.clone(),
            ty: table::root(),
            subresources: subresources(version, &own, scale.clone(), &printer),
            strategy: Arc::new(Custom {
                schema: (self.schemas.clone(), version.name().into()),
                fields: listed(&self.fields, version),
                has_status: version.has_status(),
                scale: version.scale().cloned(),
                is_terminating: crd.is_terminating(),
            }),
            printer,
            storage: Some(Storage {
                collection: self.collection.clone(),
                etcd: Etcd { prefix: Str::from(&*self.collection), form: EtcdForm::Sorted },
                conversion: None,
                converter: Some(Arc::new(converter)),
                definer: Some(self.definer.clone()),
            }),
            allocator: None,
            observer: None,
            action: None,
            deprecation: version.is_deprecated().then(|| Deprecation {
                warning: deprecation(crd, version).into(),
                removed_release: None,
            }),
            typed_items: true,
            described: Some(openapi::described(crd, version, self.source.clone())),
        })
    }
}

/// Returns the selectable fields of all versions (`all`); a field that this version does not offer
/// has no label. If there are too many, returns the fields of this version only: its selectors then
/// read the objects whose index was made for another version.
fn listed(all: &[Vec<Str>], version: Version<'_>) -> Vec<SelectableField> {
    let own: Vec<_> = selectable(version).collect();
    let all = if all.is_empty() { &own } else { all };
    let listed = all.iter().map(|members| {
        let label = if own.contains(members) { members.join(".") } else { String::new() };
        let value = FieldText::At(members.clone());
        SelectableField { label: label.into(), value, is_selective: true }
    });
    listed.collect()
}

/// The selectable fields of all versions; none if all versions together would list too many.
fn fields(crd: Crd<'_>) -> Vec<Vec<Str>> {
    let (mut fields, mut known) = (Vec::new(), HashSet::new());
    for members in crd.versions().flat_map(selectable) {
        if known.insert(members.clone()) {
            fields.push(members);
        }
    }
    let listed = fields.len().saturating_mul(crd.versions().count());
    if listed > LISTED_FIELDS_MAX { Vec::new() } else { fields }
}

/// The selectable fields of a version, each once. The path of a field has only members.
fn selectable(version: Version<'_>) -> impl Iterator<Item = Vec<Str>> {
    let fields = version.list("selectableFields").iter();
    let paths = fields.filter_map(|field| JsonPath::parse(field.str_at(&["jsonPath"])?)?.members());
    let mut known = HashSet::new();
    paths.filter(move |members| known.insert(members.clone()))
}

/// The verbs of custom resources, in upstream's order.
const VERBS: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

fn subresources(
    version: Version<'_>,
    own: &GroupVersionKind,
    scale: Option<Arc<ScalePaths>>,
    printer: &Arc<dyn Printer>,
) -> Vec<Subresource> {
    let verbs = vec![Verb::Get, Verb::Patch, Verb::Update];
    let status = version.has_status().then(|| Subresource {
        name: "status".into(),
        kind: own.clone(),
        verbs: verbs.clone(),
        behaviour: SubresourceBehaviour::Part(&[&["status"]]),
        printer: Some(printer.clone()),
    });
    let scale = scale.map(|paths| Subresource {
        name: "scale".into(),
        kind: GroupVersionKind::new("autoscaling", "v1", "Scale"),
        verbs,
        behaviour: SubresourceBehaviour::Scale(paths),
        printer: Some(Arc::new(Columns::of_scale())),
    });
    status.into_iter().chain(scale).collect()
}

fn scale(given: &Value) -> Option<Arc<ScalePaths>> {
    let path = |key: &str| given.str_at(&[key]).filter(|path| !path.is_empty()).map(members);
    Some(Arc::new(ScalePaths {
        spec_replicas: path("specReplicasPath")?,
        status_replicas: path("statusReplicasPath")?,
        selector: path("labelSelectorPath"),
        version: ScaleVersion::V1,
    }))
}

fn deprecation(crd: Crd<'_>, version: Version<'_>) -> String {
    if let Some(given) = version.0.str_at(&["deprecationWarning"]) {
        return given.to_owned();
    }
    let (group, kind) = (crd.group(), crd.names().kind());
    let better = crd.versions().filter(|other| {
        other.is_served()
            && !other.is_deprecated()
            && version::cmp(other.name(), version.name()).is_lt()
    });
    let hint = better.min_by(|a, b| version::cmp(a.name(), b.name()));
    let hint = hint.map_or(String::new(), |v| format!("; use {group}/{} {kind}", v.name()));
    format!("{group}/{} {kind} is deprecated{hint}", version.name())
}

#[cfg(test)]
mod tests;
