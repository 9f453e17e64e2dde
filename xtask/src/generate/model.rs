//! The model of a release's types: [`super::sources`], joined. The back ends write it to files;
//! nothing here knows Rust syntax.

mod members;
mod shapes;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::rules::{self, Rule};
use super::sources::{Definition, Member, Sources, go_name, reflected};
use members::{Flat, default, flatten};
use shapes::{definition_of_go, definition_of_proto};

pub(crate) use members::message_field;

/// Types that OpenAPI does not publish (they are not in request or response bodies), but that the
/// server reads or writes. Their shapes come from Go and Protobuf.
pub(crate) const UNPUBLISHED: &[&str] = &[
    "io.k8s.api.admission.v1.AdmissionRequest",
    "io.k8s.api.admission.v1.AdmissionResponse",
    "io.k8s.api.admission.v1.AdmissionReview",
    "io.k8s.api.apidiscovery.v2.APISubresourceDiscovery",
    "io.k8s.api.apidiscovery.v2.APIResourceDiscovery",
    "io.k8s.api.apidiscovery.v2.APIVersionDiscovery",
    "io.k8s.api.apidiscovery.v2.APIGroupDiscovery",
    "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList",
    "io.k8s.api.core.v1.NodeProxyOptions",
    "io.k8s.api.core.v1.PodAttachOptions",
    "io.k8s.api.core.v1.PodExecOptions",
    "io.k8s.api.core.v1.PodLogOptions",
    "io.k8s.api.core.v1.PodPortForwardOptions",
    "io.k8s.api.core.v1.PodProxyOptions",
    "io.k8s.api.core.v1.RangeAllocation",
    "io.k8s.api.core.v1.SerializedReference",
    "io.k8s.api.core.v1.ServiceProxyOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.CreateOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.GetOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.GroupVersionKind",
    "io.k8s.apimachinery.pkg.apis.meta.v1.GroupVersionResource",
    "io.k8s.apimachinery.pkg.apis.meta.v1.List",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PatchOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Table",
    "io.k8s.apimachinery.pkg.apis.meta.v1.TableColumnDefinition",
    "io.k8s.apimachinery.pkg.apis.meta.v1.TableOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.TableRow",
    "io.k8s.apimachinery.pkg.apis.meta.v1.TableRowCondition",
    "io.k8s.apimachinery.pkg.apis.meta.v1.UpdateOptions",
];

/// Named types that are not structs, and their scalar types.
const SCALARS: &[(&str, &str)] = &[
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "Any"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray", "Any"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool", "Any"),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
        "Any",
    ),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSON", "Any"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSONSchemaPropsOrArray", "Any"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSONSchemaPropsOrBool", "Any"),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSONSchemaPropsOrStringArray",
        "Any",
    ),
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "Quantity"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Duration", "Duration"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "Fields"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "MicroTime"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Patch", "Any"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "Time"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", "RawExtension"),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "IntOrString"),
];

/// The types by identifier.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Model {
    pub(crate) types: BTreeMap<String, Type>,
    /// The names of the types that others refer to, by identifier.
    pub(crate) references: BTreeMap<String, String>,
}

/// One type, named or not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Type {
    /// The OpenAPI name; empty for a plain scalar, a list and a map.
    pub(crate) name: String,
    /// Whether it is the named type itself, not a variant of it.
    pub(crate) canonical: bool,
    pub(crate) shape: Shape,
}

/// The shape of a type; other types are referred to by identifier.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Scalar(&'static str),
    Struct { fields: Vec<Field>, atomic: bool },
    Map { value: String, atomic: bool },
    List { item: String, list_type: ListType },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) presence: &'static str,
    pub(crate) required: bool,
    pub(crate) tag: u32,
    pub(crate) inside: Vec<u32>,
    /// The names of the field and its type in Go's decoder.
    pub(crate) go: GoName,
    pub(crate) patch: Patch,
    pub(crate) default: Option<serde_json::Value>,
    pub(crate) rules: Vec<Rule>,
}

/// The names in Go's decoder of a field, beyond its JSON name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GoName {
    /// The embedded structs that contain it, outermost first.
    pub(crate) embedded: Vec<String>,
    /// Its type, as reflection prints it: `[]v1.PersistentVolumeAccessMode`.
    pub(crate) ty: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Patch {
    pub(crate) merge: bool,
    pub(crate) replace: bool,
    pub(crate) retain_keys: bool,
    pub(crate) merge_key: String,
}

impl Model {
    /// Joins the sources.
    pub(crate) fn new(sources: &Sources) -> Result<Self> {
        let mut model = Self::default();
        for (name, definition) in &sources.definitions {
            model.named(sources, name, Some(definition)).with_context(|| name.clone())?;
        }
        for name in UNPUBLISHED {
            model.named(sources, name, None).with_context(|| (*name).to_owned())?;
        }
        Ok(model)
    }

    /// A model of these types alone, which are in no OpenAPI document.
    pub(crate) fn unpublished<'n>(
        sources: &Sources,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self> {
        let mut model = Self::default();
        for name in names {
            model.named(sources, name, None).with_context(|| name.to_owned())?;
        }
        Ok(model)
    }

    fn named(
        &mut self,
        sources: &Sources,
        name: &str,
        definition: Option<&Definition>,
    ) -> Result<()> {
        let shape = match SCALARS.iter().find(|(n, _)| *n == name) {
            Some((_, scalar)) => Shape::Scalar(scalar),
            None => Shape::Struct {
                fields: self.fields(sources, name, definition)?,
                atomic: definition.is_some_and(|d| d.map_type.as_deref() == Some("atomic")),
            },
        };
        let ty = Type { name: name.to_owned(), canonical: true, shape };
        if self.types.insert(identifier(name), ty).is_some() {
            bail!("two types would be called {}", identifier(name));
        }
        Ok(())
    }

    fn fields(
        &mut self,
        sources: &Sources,
        name: &str,
        definition: Option<&Definition>,
    ) -> Result<Vec<Field>> {
        let mut fields = self.fields_of_struct(sources, name, definition)?;
        for field in &mut fields {
            if DISTINCT.contains(&(name, &field.name)) {
                field.presence = "Distinct";
            }
        }
        Ok(fields)
    }

    fn fields_of_struct(
        &mut self,
        sources: &Sources,
        name: &str,
        definition: Option<&Definition>,
    ) -> Result<Vec<Field>> {
        let mut flat = Vec::new();
        flatten(sources, name, &[], &[], &mut flat)?;
        let Some(definition) = definition else {
            return flat.iter().map(|f| self.unpublished_field(sources, f)).collect();
        };
        let nothing = BTreeMap::new();
        let published = definition.fields.as_ref().unwrap_or(&nothing);
        let mut fields = Vec::new();
        for f in &flat {
            let Some(p) = published.get(&f.member.name) else { continue };
            let ty = self.reference(p)?;
            let required = definition.required.contains(&f.member.name);
            fields.push(self.field(sources, f, ty, required, patch_of_definition(p))?);
        }
        if let Some(lost) = published.keys().find(|n| fields.iter().all(|f| f.name != **n)) {
            bail!("no Go member for the field {lost}");
        }
        Ok(fields)
    }

    fn field(
        &self,
        sources: &Sources,
        f: &Flat<'_>,
        ty: String,
        required: bool,
        patch: Patch,
    ) -> Result<Field> {
        Ok(Field {
            name: f.member.name.clone(),
            presence: self.presence(f.member, &ty),
            ty,
            required,
            tag: f.tag,
            inside: f.inside.clone(),
            go: GoName { embedded: f.embedded.clone(), ty: reflected(f.package, &f.member.go) },
            patch,
            default: default(sources, f)?,
            rules: rules::of(sources, f.package, f.member),
        })
    }

    /// A field of a type without an OpenAPI definition: its type comes from Protobuf, else from Go.
    fn unpublished_field(&mut self, sources: &Sources, f: &Flat<'_>) -> Result<Field> {
        let as_definition = match &f.message {
            Some((field, package_of)) => definition_of_proto(sources, field, package_of),
            None => definition_of_go(sources, f.package, &f.member.go)?,
        };
        let mut definition = as_definition;
        let text = |name: &str| f.member.tag(name).map(str::to_owned);
        definition.list_type = text("listType");
        definition.list_map_keys = f.member.tag_values("listMapKey").map(str::to_owned).collect();
        definition.patch_strategy = text("patchStrategy");
        definition.patch_merge_key = text("patchMergeKey");
        let ty = self.reference(&definition)?;
        let required = !f.member.omit_empty && !f.member.tags.iter().any(|t| t == "optional");
        self.field(sources, f, ty, required, patch_of_definition(&definition))
    }

    /// The identifier of the type of a field, an item or a value; creates the type if it is new and
    /// has no name.
    fn reference(&mut self, d: &Definition) -> Result<String> {
        if let Some(name) = &d.reference {
            let id = identifier(name);
            self.references.insert(id.clone(), name.clone());
            return Ok(match d.map_type.as_deref() {
                None => id,
                Some("granular") => self.granular(&id)?,
                Some(other) => bail!("a reference with map type {other}"),
            });
        }
        let (id, shape) = match (d.kind.as_deref(), d.format.as_deref()) {
            (Some("array"), _) => {
                let item = self.reference(d.items.as_deref().context("a list without items")?)?;
                let (prefix, suffix, list_type) = match d.list_type.as_deref() {
                    None | Some("atomic") => ("ListOf", String::new(), ListType::Atomic),
                    Some("set") => ("SetOf", String::new(), ListType::Set),
                    Some("map") => {
                        let keys = d.list_map_keys.clone();
                        let by = keys.iter().map(|k| upper_first(k)).collect::<String>();
                        ("ListOf", format!("By{by}"), ListType::Map(keys))
                    }
                    Some(other) => bail!("unknown list type {other}"),
                };
                (format!("{prefix}{item}{suffix}"), Shape::List { item, list_type })
            }
            (Some("object"), _) => {
                let value =
                    self.reference(d.values.as_deref().context("an object with fields")?)?;
                let atomic = d.map_type.as_deref() == Some("atomic");
                let prefix = if atomic { "AtomicMapOf" } else { "MapOf" };
                (format!("{prefix}{value}"), Shape::Map { value, atomic })
            }
            (kind, format) => {
                let scalar = match (kind, format) {
                    (Some("string"), None) => "String",
                    (Some("string"), Some("byte")) => "Bytes",
                    (Some("boolean"), None) => "Bool",
                    (Some("integer"), Some("int32")) => "Int32",
                    (Some("integer"), Some("int64")) => "Int64",
                    (Some("number"), Some("double")) => "Float64",
                    (None, None) => "Any",
                    other => bail!("unknown type {other:?}"),
                };
                (scalar.to_owned(), Shape::Scalar(scalar))
            }
        };
        let ty = Type { name: String::new(), canonical: false, shape };
        self.types.entry(id.clone()).or_insert(ty);
        Ok(id)
    }

    /// The variant of an atomic struct whose members have their own owners.
    fn granular(&mut self, id: &str) -> Result<String> {
        let Some(Type { name, shape: Shape::Struct { fields, .. }, .. }) = self.types.get(id)
        else {
            bail!("{id} must be made before its variant");
        };
        let shape = Shape::Struct { fields: fields.clone(), atomic: false };
        let ty = Type { name: name.clone(), canonical: false, shape };
        let variant = format!("Granular{id}");
        self.types.insert(variant.clone(), ty);
        Ok(variant)
    }

    /// The treatment of a zero value by Go's `encoding/json`. `omitempty` has no effect on a
    /// struct, and times, quantities and the like are structs.
    fn presence(&self, member: &Member, ty: &str) -> &'static str {
        let is_struct = match self.types.get(ty).map(|t| &t.shape) {
            Some(Shape::Scalar(s)) => {
                !matches!(*s, "String" | "Bool" | "Int32" | "Int64" | "Float64" | "Bytes")
            }
            Some(Shape::Struct { .. }) | None => true,
            Some(Shape::Map { .. } | Shape::List { .. }) => false,
        };
        match (member.go.starts_with('*'), member.omit_empty) {
            (true, true) => "Pointer",
            (true, false) => "Null",
            (false, _) if member.omit_zero => "OmitZero",
            (false, true) if !is_struct => "OmitZero",
            (false, _) => "Always",
        }
    }
}

/// Lists and maps with `omitempty` whose presence matters even if they are empty: a rule or a
/// plugin compares with `nil` in Go, or a refusal shows them.
const DISTINCT: [(&str, &str); 30] = [
    ("io.k8s.api.admissionregistration.v1.MutatingWebhook", "rules"),
    ("io.k8s.api.admissionregistration.v1.ValidatingWebhook", "rules"),
    ("io.k8s.api.admissionregistration.v1beta1.MutatingWebhook", "rules"),
    ("io.k8s.api.admissionregistration.v1beta1.ValidatingWebhook", "rules"),
    ("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies"),
    ("io.k8s.api.autoscaling.v2beta2.HPAScalingRules", "policies"),
    ("io.k8s.api.core.v1.ConfigMap", "binaryData"),
    ("io.k8s.api.core.v1.EphemeralContainer", "ports"),
    ("io.k8s.api.core.v1.EphemeralContainer", "resizePolicy"),
    ("io.k8s.api.core.v1.EphemeralContainer", "restartPolicyRules"),
    ("io.k8s.api.core.v1.PersistentVolumeSpec", "capacity"),
    ("io.k8s.api.core.v1.PodSpec", "overhead"),
    ("io.k8s.api.core.v1.ResourceQuotaSpec", "scopes"),
    ("io.k8s.api.core.v1.Secret", "data"),
    ("io.k8s.api.extensions.v1beta1.IngressSpec", "rules"),
    ("io.k8s.api.networking.v1.IngressSpec", "rules"),
    ("io.k8s.api.networking.v1.ServiceCIDRSpec", "cidrs"),
    ("io.k8s.api.networking.v1alpha1.ServiceCIDRSpec", "cidrs"),
    ("io.k8s.api.networking.v1beta1.IngressSpec", "rules"),
    ("io.k8s.api.networking.v1beta1.ServiceCIDRSpec", "cidrs"),
    ("io.k8s.api.resource.v1.ResourceSliceSpec", "devices"),
    ("io.k8s.api.resource.v1.ResourceSliceSpec", "sharedCounters"),
    ("io.k8s.api.resource.v1beta1.ResourceSliceSpec", "devices"),
    ("io.k8s.api.resource.v1beta1.ResourceSliceSpec", "sharedCounters"),
    ("io.k8s.api.resource.v1beta2.ResourceSliceSpec", "devices"),
    ("io.k8s.api.resource.v1beta2.ResourceSliceSpec", "sharedCounters"),
    ("io.k8s.api.storage.v1.StorageClass", "parameters"),
    ("io.k8s.api.storage.v1beta1.StorageClass", "parameters"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps", "dependencies"),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSONSchemaProps",
        "dependencies",
    ),
];

fn patch_of_definition(d: &Definition) -> Patch {
    let strategies: Vec<&str> = d.patch_strategy.as_deref().unwrap_or("").split(',').collect();
    Patch {
        merge: strategies.contains(&"merge"),
        replace: strategies.contains(&"replace"),
        retain_keys: strategies.contains(&"retainKeys"),
        merge_key: d.patch_merge_key.clone().unwrap_or_default(),
    }
}

/// A short identifier of a named type: its group and version and its name.
pub(crate) fn identifier(definition: &str) -> String {
    let path =
        go_name(definition).map_or_else(|| definition.to_owned(), |(p, n)| format!("{p}/{n}"));
    let parts: Vec<&str> = path.split('/').collect();
    let versioned = parts.len() >= 3 && is_version(parts[parts.len() - 2]);
    let words = &parts[parts.len() - if versioned { 3 } else { 2 }..];
    words.iter().map(|p| upper_first(p)).collect()
}

fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

pub(crate) fn upper_first(s: &str) -> String {
    let mut chars = s.chars();
    chars.next().map_or_else(String::new, |c| c.to_ascii_uppercase().to_string() + chars.as_str())
}
