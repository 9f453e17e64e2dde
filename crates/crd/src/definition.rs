//! Accessors for the tree of a CustomResourceDefinition.

use pintle_meta::object;
use pintle_registry::Definer;
use pintle_value::{Str, Value, json};

/// A CustomResourceDefinition (`apiextensions.k8s.io/v1`).
#[derive(Clone, Copy)]
pub struct Crd<'a>(pub &'a Value);

/// The names of a resource: those of a spec, or the accepted ones of a status.
#[derive(Clone, Copy)]
pub struct Names<'a>(Option<&'a Value>);

/// One version of a definition.
#[derive(Clone, Copy)]
pub struct Version<'a>(pub(crate) &'a Value);

impl<'a> Crd<'a> {
    /// The definer of its resources: the definition itself.
    pub(crate) fn definer(self) -> Definer {
        const COLLECTION: &str = "apiextensions.k8s.io/customresourcedefinitions";
        Definer::new(COLLECTION, object::name(self.0), object::uid(self.0))
    }

    /// The group of its resource.
    pub fn group(self) -> &'a str {
        self.0.str_at(&["spec", "group"]).unwrap_or_default()
    }

    /// The names that the spec requests.
    pub fn names(self) -> Names<'a> {
        Names(self.0.at(&["spec", "names"]))
    }

    /// The accepted names.
    pub fn accepted_names(self) -> Names<'a> {
        Names(self.0.at(&["status", "acceptedNames"]))
    }

    /// Whether its objects keep members that the schemas do not declare.
    pub fn preserves_unknown(self) -> bool {
        self.0.at(&["spec", "preserveUnknownFields"]).and_then(Value::as_bool) == Some(true)
    }

    /// Its versions, in the order of the spec.
    pub fn versions(self) -> impl ExactSizeIterator<Item = Version<'a>> + Clone {
        self.list(&["spec", "versions"]).iter().map(Version)
    }

    /// The version with this name.
    pub fn version(self, name: &str) -> Option<Version<'a>> {
        self.versions().find(|version| version.name() == name)
    }

    /// The storage version.
    pub fn storage_version(self) -> Option<Version<'a>> {
        self.versions().find(|version| version.is_storage())
    }

    /// Whether its objects are namespaced.
    pub fn is_namespaced(self) -> bool {
        self.0.str_at(&["spec", "scope"]) == Some("Namespaced")
    }

    /// The collection of its objects in the store.
    pub fn collection(self) -> String {
        format!("{}/{}", self.group(), self.names().plural())
    }

    /// The condition of this type.
    pub fn condition(self, condition_type: &str) -> Option<&'a Value> {
        let is_it = |c: &&Value| c.str_at(&["type"]) == Some(condition_type);
        self.list(&["status", "conditions"]).iter().find(is_it)
    }

    /// Whether the condition of this type is true.
    pub fn has(self, condition_type: &str) -> bool {
        let status = self.condition(condition_type).and_then(|c| c.str_at(&["status"]));
        status == Some("True")
    }

    /// Whether it has a deletion timestamp or the condition `Terminating`.
    pub fn is_terminating(self) -> bool {
        object::is_terminating(self.0) || self.has("Terminating")
    }

    /// The list at a path; empty if it is missing.
    pub(crate) fn list(self, path: &[&str]) -> &'a [Value] {
        self.0.at(path).and_then(Value::as_array).unwrap_or_default()
    }
}

impl<'a> Names<'a> {
    fn text(self, key: &str) -> &'a str {
        self.0.and_then(|names| names.str_at(&[key])).unwrap_or_default()
    }

    /// The plural name, as in URLs.
    pub fn plural(self) -> &'a str {
        self.text("plural")
    }

    /// The singular name.
    pub fn singular(self) -> &'a str {
        self.text("singular")
    }

    /// The kind of objects.
    pub fn kind(self) -> &'a str {
        self.text("kind")
    }

    /// The kind of lists.
    pub fn list_kind(self) -> &'a str {
        self.text("listKind")
    }

    /// The short names for kubectl.
    pub fn short_names(self) -> Vec<Str> {
        self.texts("shortNames")
    }

    /// The categories for kubectl.
    pub fn categories(self) -> Vec<Str> {
        self.texts("categories")
    }

    fn texts(self, key: &str) -> Vec<Str> {
        let list = self.0.and_then(|names| names.get(key)).and_then(Value::as_array);
        list.unwrap_or_default().iter().filter_map(Value::as_str).map(Str::from).collect()
    }
}

impl<'a> Version<'a> {
    /// The version, such as `v1`.
    pub fn name(self) -> &'a str {
        self.0.str_at(&["name"]).unwrap_or_default()
    }

    /// Whether it is served.
    pub fn is_served(self) -> bool {
        self.flag("served")
    }

    /// Whether it is the storage version.
    pub fn is_storage(self) -> bool {
        self.flag("storage")
    }

    /// Whether its use causes a warning.
    pub fn is_deprecated(self) -> bool {
        self.flag("deprecated")
    }

    /// Its schema.
    pub fn schema(self) -> Option<&'a Value> {
        self.0.at(&["schema", "openAPIV3Schema"])
    }

    /// Whether it has a status subresource.
    pub fn has_status(self) -> bool {
        self.0.at(&["subresources", "status"]).is_some_and(|status| !status.is_null())
    }

    /// Its scale subresource: the paths of the replica counts and of the selector.
    pub fn scale(self) -> Option<&'a Value> {
        self.0.at(&["subresources", "scale"]).filter(|scale| !scale.is_null())
    }

    /// The list under this key.
    pub(crate) fn list(self, key: &str) -> &'a [Value] {
        self.0.get(key).and_then(Value::as_array).unwrap_or_default()
    }

    fn flag(self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// The schema of a version, read from the JSON of a stored definition without decoding the rest,
/// which can be large.
pub fn stored_schema(crd: &[u8], version: &str) -> Option<Value> {
    let spec = &crd[json::member(crd, "spec")?];
    let versions = &spec[json::member(spec, "versions")?];
    let mut versions = json::items(versions).map(|range| &versions[range]);
    let of_name = |json: &&[u8]| {
        let name = json::member(json, "name").and_then(|range| json::parse(&json[range]).ok());
        name.is_some_and(|name| name.as_str() == Some(version))
    };
    let found = versions.find(of_name)?;
    let schema = &found[json::member(found, "schema")?];
    let schema = json::parse(&schema[json::member(schema, "openAPIV3Schema")?]).ok()?;
    (!schema.is_null()).then_some(schema)
}
