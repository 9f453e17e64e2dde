//! Kind, version, name and namespace in an object: they must match the URL. The kind of object and
//! the verb decide which of them may be absent.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pintle_meta::{GroupKind, Status, field};
use pintle_schema::{Problem, decode::Decoded};
use pintle_value::{Map, Path, Str, Value, json};

use super::Write;
use super::patch::refused;
use crate::Resource;

impl Write<'_> {
    /// Refuses a body with another kind or version. A body of a built-in kind may lack both
    /// (PATH-15).
    pub(super) fn check_coordinates(
        &self,
        tree: &Value,
        kind: &str,
        api_version: &str,
    ) -> Result<(), Status> {
        let resource = &self.target.resource;
        if resource.typed_items && resource.kind == kind {
            return check_typed(tree, kind, api_version);
        }
        let text = |member| tree.str_at(&[member]).filter(|text| !text.is_empty());
        let own_version = text("apiVersion").unwrap_or(api_version);
        let own_kind = text("kind").unwrap_or(kind);
        if own_version == api_version && own_kind == kind {
            return Ok(());
        }
        let version = own_version.rsplit('/').next().unwrap_or_default();
        let refuse = |why: &str| {
            let head = format!("{own_kind} in version {version:?} cannot be handled as a {kind}");
            Err(Status::bad_request(format!("{head}: {why}")))
        };
        let (_, served) = self.registry.resources();
        let known = |r: &Resource| {
            let named = r.kind == own_kind || r.list_kind == own_kind;
            !r.typed_items && named && r.api_version() == own_version
        };
        if !served.iter().any(|resource| known(resource)) {
            if !(own_version == "v1" && META_KINDS.contains(&own_kind)) {
                return refuse(&not_registered(own_kind, own_version));
            }
            if let Err(why) = check_meta(own_kind, tree) {
                return refuse(&why.to_string());
            }
        }
        if own_kind == kind {
            return Err(Status::bad_request(format!(
                "the API version in the data ({own_version}) does not match the expected API \
                 version ({api_version})"
            )));
        }
        refuse(&no_conversion((own_version, own_kind), (api_version, kind)))
    }

    /// Checks that a patched object still has its kind and version. The rules are those for a
    /// request body, but errors name the patch and show its result (STRAT-09).
    pub(super) fn check_patched(
        &self,
        tree: &Value,
        shown: impl Fn() -> Option<String>,
    ) -> Result<(), Status> {
        let resource = &self.target.resource;
        let api_version = resource.api_version();
        let [kind, version] = ["kind", "apiVersion"].map(|member| tree.get(member));
        let same =
            |value: Option<&Value>, expected: &str| value.and_then(Value::as_str) == Some(expected);
        if same(kind, &resource.kind) && same(version, &api_version) {
            return Ok(());
        }
        let refuse = |why: &str| Err(refused(shown().unwrap_or_default(), why));
        for (member, value) in [("kind", kind), ("apiVersion", version)] {
            if let Some(other) = value.filter(|value| !value.is_null() && value.as_str().is_none())
            {
                let found = other.type_name();
                return refuse(&format!(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go \
                     struct field .{member} of type string"
                ));
            }
        }
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, version) = (text(kind), text(version));
        if resource.typed_items {
            if kind.is_empty() {
                let shown = shown().unwrap_or_default();
                let why = missing_kind(&shown);
                return Err(refused(shown, &why));
            }
            if version != api_version {
                let words = format!("must be {api_version}");
                let error = field::Error::invalid(&Path::new("apiVersion"), &version.into(), words);
                let named = GroupKind::new(resource.resource.group.clone(), kind);
                return Err(Status::invalid(&named, pintle_meta::object::name(tree), &[error]));
            }
            check_typed(tree, &resource.kind, &api_version)?;
            return self.check_own_kind(tree);
        }
        if version.is_empty() {
            return self.refuse_unversioned(tree, &shown);
        }
        // An absent kind keeps its old value.
        let kind = if kind.is_empty() { resource.kind.to_string() } else { kind };
        let (_, served) = self.registry.resources();
        if !served.iter().any(|r| r.kind == kind && r.api_version() == version) {
            return refuse(&not_registered(&kind, &version));
        }
        if kind == resource.kind {
            return Ok(());
        }
        refuse(&no_conversion((&version, &kind), (&resource.api_version(), &resource.kind)))
    }

    /// Refuses a patched object without a version. Upstream decodes it as its internal type, which
    /// has no field of the same name, so that the object has no name.
    fn refuse_unversioned(
        &self,
        tree: &Value,
        shown: &impl Fn() -> Option<String>,
    ) -> Result<(), Status> {
        let members = tree.as_object().into_iter().flat_map(Map::keys);
        let unknown = members.filter(|name| !matches!(name.as_str(), "apiVersion" | "kind"));
        let problems: Vec<String> =
            unknown.map(|name| Problem::Unknown(name.to_string()).to_string()).collect();
        self.report_field_problems(problems.iter().cloned(), || {
            let why = format!("strict decoding error: {}", problems.join(", "));
            refused(shown().unwrap_or_default(), &why)
        })?;
        Err(self.unnamed())
    }

    fn unnamed(&self) -> Status {
        Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            self.target.name
        ))
    }

    /// Refuses a custom resource with another kind. Upstream does so only in validation
    /// (`ValidateTypeMeta`).
    pub(super) fn check_own_kind(&self, tree: &Value) -> Result<(), Status> {
        let resource = &self.target.resource;
        let own = tree.str_at(&["kind"]).unwrap_or(&resource.kind);
        if !resource.typed_items || own == resource.kind {
            return Ok(());
        }
        let words = format!("must be {}", resource.kind);
        let error = field::Error::invalid(&Path::new("kind"), &own.into(), words);
        let named = GroupKind::new(resource.resource.group.clone(), own);
        Err(Status::invalid(&named, pintle_meta::object::name(tree), &[error]))
    }

    /// Returns the field problems to report of a custom resource, whose body may be of another kind
    /// or version (upstream: `unstructuredSchemaCoercer`). In another version of its kind, all
    /// members except metadata are unknown; in another kind, only unknown members of metadata are
    /// reported. Duplicate members are reported in both cases.
    pub(super) fn reported_problems(&self, decoded: &Decoded) -> Vec<Problem> {
        let (resource, tree) = (&self.target.resource, &decoded.value);
        let text = |member| tree.str_at(&[member]).unwrap_or_default();
        let (kind, (group, version)) =
            (text("kind"), text("apiVersion").split_once('/').unwrap_or_default());
        if kind.is_empty() {
            return Vec::new();
        }
        let is_of_kind = kind == resource.kind && group == resource.resource.group;
        if is_of_kind && version == resource.resource.version {
            return decoded.problems.clone();
        }
        let is_apart = |problem: &&Problem| match problem {
            Problem::Unknown(path) => path.starts_with("metadata."),
            Problem::Duplicate(_) | Problem::Repeated(_) => true,
        };
        let (reported, unknown): (Vec<&Problem>, Vec<_>) =
            decoded.problems.iter().partition(is_apart);
        let mut reported: Vec<Problem> = reported.into_iter().cloned().collect();
        if is_of_kind {
            let top = |path: &str| !path.contains(['.', '[']);
            let members = tree.as_object().into_iter().flat_map(Map::keys);
            let dropped = unknown.into_iter().map(Problem::path).filter(|path| top(path));
            let all: BTreeSet<&str> = members.map(|key| &**key).chain(dropped).collect();
            let known = ["apiVersion", "kind", "metadata"];
            let unknown = all.into_iter().filter(|name| !known.contains(name));
            reported.extend(unknown.map(|name| Problem::Unknown(name.to_owned())));
        }
        reported
    }

    /// Sets the URL's namespace in an object. Refuses another namespace in a namespaced object
    /// (META-32) and removes the namespace from a cluster-scoped object.
    pub(super) fn set_namespace(&self, tree: &mut Value) -> Result<(), Status> {
        let wanted = &self.target.namespace;
        let own: Str = pintle_meta::object::namespace(tree).into();
        if !own.is_empty() && own != *wanted && self.target.resource.namespaced() {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
        pintle_meta::object::set_text(tree, "namespace", wanted.clone());
        Ok(())
    }

    /// Refuses an object whose name is absent, or whose name or namespace differs from the URL's
    /// (META-32).
    pub(super) fn check_name(&self, tree: &Value) -> Result<(), Status> {
        let wanted = &self.target.name;
        let own = pintle_meta::object::name(tree);
        if own.is_empty() {
            return Err(self.unnamed());
        }
        if own != *wanted {
            return Err(Status::bad_request(format!(
                "the name of the object ({own}) does not match the name on the URL ({wanted})"
            )));
        }
        let namespace = pintle_meta::object::namespace(tree);
        if !namespace.is_empty() && namespace != self.target.namespace {
            return Err(Status::bad_request(format!(
                "the namespace of the object ({namespace}) does not match the namespace on the \
                 request ({})",
                self.target.namespace
            )));
        }
        Ok(())
    }
}

/// Kinds of the API machinery that are registered without a resource.
pub(super) const META_KINDS: &[&str] =
    &["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status"];

/// Checks that an object of one of the [`META_KINDS`] can be decoded.
fn check_meta(kind: &str, tree: &Value) -> Result<(), pintle_schema::Error> {
    let schema = pintle_schema::builtin();
    let name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}");
    let Some(ty) = schema.find(&name) else { return Ok(()) };
    pintle_schema::decode::conform(schema, ty, &mut tree.clone()).map(|_| ())
}

/// Refuses a custom resource without kind, or with another version (upstream:
/// `UnstructuredJSONScheme`). Another kind fails later, in [`Write::check_own_kind`].
fn check_typed(tree: &Value, kind: &str, api_version: &str) -> Result<(), Status> {
    let text = |member| tree.str_at(&[member]).unwrap_or_default();
    if text("kind").is_empty() {
        let shown = json::to_string(tree);
        let why = missing_kind(&shown);
        return Err(unrecognized(kind, &why, shown.as_bytes()));
    }
    let own_version = text("apiVersion");
    if own_version != api_version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({own_version}) does not match the expected API version \
             ({api_version})"
        )));
    }
    Ok(())
}

/// The Status 400 for a body of unknown type; it shows the beginning of the body.
pub(super) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> Status {
    let shown = summary(body);
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
    ))
}

/// Returns the beginning of a body: as text if it looks like JSON, else in hexadecimal.
fn summary(body: &[u8]) -> String {
    const SHOWN_BYTES: usize = 30;
    let start = &body[..body.len().min(SHOWN_BYTES)];
    let more = if body.len() > SHOWN_BYTES { " ..." } else { "" };
    let shown = match start {
        [] => "<empty>".to_owned(),
        [b'{', ..] => String::from_utf8_lossy(start).into_owned(),
        _ => start.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }),
    };
    format!("{shown}{more}")
}

fn missing_kind(json: &str) -> String {
    format!("Object 'Kind' is missing in '{json}'")
}

fn not_registered(kind: &str, api_version: &str) -> String {
    format!(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \
         \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\""
    )
}

/// The error of Go's conversion between two kinds.
fn no_conversion(from: (&str, &str), to: (&str, &str)) -> String {
    let version = from.0.rsplit('/').next().unwrap_or_default();
    let package = internal_package(to.0);
    format!("converting ({version}.{}) to ({package}.{}): unknown conversion", from.1, to.1)
}

impl Resource {
    /// Returns Go's name for the internal type of the resource's objects or lists, which some
    /// errors contain.
    pub fn internal_type(&self, is_list: bool) -> String {
        match (self.typed_items, is_list) {
            (true, false) => "*unstructured.Unstructured".to_owned(),
            (true, true) => "*unstructured.UnstructuredList".to_owned(),
            (false, _) => {
                let kind = if is_list { &self.list_kind } else { &self.kind };
                format!("*{}.{kind}", internal_package(&self.api_version()))
            }
        }
    }
}

/// Returns the Go package of a group's internal types, which some errors contain.
fn internal_package(api_version: &str) -> &str {
    match api_version.rsplit_once('/').map_or("", |(group, _)| group) {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or(group),
    }
}
