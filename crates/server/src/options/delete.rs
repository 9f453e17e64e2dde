//! The options of delete and deletecollection: a body replaces the query entirely (STRAT-04).

use pintle_meta::{Status, field};
use pintle_registry::request::{
    DeleteOptions, Encoding, IGNORE_READ_ERRORS, Propagation, Warnings,
};
use pintle_value::{Path, Value, cbor, json, yaml};

use super::{dry_run, dry_run_values, integer, refuse};
use crate::query::Query;
use crate::request_info::flag;

const KIND: &str = "DeleteOptions";
/// The values of `propagationPolicy`, as upstream's message lists them.
const POLICIES: &[&str] = &["Foreground", "Background", "Orphan", "nil"];

/// Parses the options from the body, or from the query if the body is empty.
pub(crate) fn delete_options(
    query: &Query,
    body: &[u8],
    encoding: Encoding,
    warnings: &Warnings,
) -> Result<DeleteOptions, Status> {
    let raw = match body {
        [] => from_query(query, warnings)?,
        body => from_body(body, encoding)?,
    };
    raw.check()
}

/// Options before they are checked.
#[derive(Default)]
struct Raw {
    dry_run: Vec<String>,
    grace_period_seconds: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    ignore_read_errors: Option<bool>,
}

fn from_query(query: &Query, warnings: &Warnings) -> Result<Raw, Status> {
    let given = |key| Some(query.text(key)).filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(Raw {
        dry_run: dry_run_values(query, warnings).into_iter().map(str::to_owned).collect(),
        grace_period_seconds: integer(query, "gracePeriodSeconds")?,
        uid: given("uid"),
        resource_version: given("resourceVersion"),
        propagation_policy: query.get("propagationPolicy").map(str::to_owned),
        orphan_dependents: query.get("orphanDependents").map(|value| flag(Some(value))),
        ignore_read_errors: query.get(IGNORE_READ_ERRORS).map(|value| flag(Some(value))),
    })
}

fn from_body(body: &[u8], encoding: Encoding) -> Result<Raw, Status> {
    let tree = match encoding {
        Encoding::Json => json::parse(body).map_err(|error| format!("{UNKNOWN_KIND}{error}")),
        Encoding::Yaml => yaml::parse(body).map_err(|error| error.to_string()),
        Encoding::Cbor => cbor::parse(body).map_err(|error| error.to_string()),
        Encoding::Protobuf => message(body).map_err(|error| error.to_string()),
    }
    .map_err(Status::bad_request)?;
    check_kind(&tree)?;
    if tree.is_null() {
        return Ok(Raw::default());
    }
    Ok(Raw {
        dry_run: match member(&tree, "dryRun") {
            None => Vec::new(),
            Some(list) => texts(list)?,
        },
        grace_period_seconds: read(&tree, "gracePeriodSeconds", "int64", Value::as_int)?,
        uid: read_text(&tree, &["preconditions", "uid"])?,
        resource_version: read_text(&tree, &["preconditions", "resourceVersion"])?,
        propagation_policy: read_text(&tree, &["propagationPolicy"])?,
        orphan_dependents: read(&tree, "orphanDependents", "bool", Value::as_bool)?,
        ignore_read_errors: read(&tree, IGNORE_READ_ERRORS, "bool", Value::as_bool)?,
    })
}

/// The options as audit records them: JSON of the internal version. `None` if the body cannot be
/// parsed.
pub(crate) fn recorded_options(body: &[u8], encoding: Encoding) -> Option<Vec<u8>> {
    let mut options = match encoding {
        Encoding::Json => json::parse(body).ok()?,
        Encoding::Yaml => yaml::parse(body).ok()?,
        Encoding::Cbor => cbor::parse(body).ok()?,
        Encoding::Protobuf => message(body).ok()?,
    };
    options.make_object().insert("kind", KIND);
    options.make_object().insert("apiVersion", "meta.k8s.io/__internal");
    let schema = pintle_schema::builtin();
    let mut out = Vec::with_capacity(256);
    pintle_schema::encode::write(schema, schema.find(TYPE)?, &options, &mut out);
    Some(out)
}

/// The prefix of upstream's error about a body's kind.
const UNKNOWN_KIND: &str = "couldn't get version/kind; json parse error: ";

/// Checks the kind, which is optional and must be DeleteOptions if present. Any `apiVersion` is
/// accepted with this kind.
fn check_kind(tree: &Value) -> Result<(), Status> {
    const TOP: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                       Kind string \"json:\\\"kind,omitempty\\\"\" }";
    let refuse = |why: &str| Err(Status::bad_request(format!("{UNKNOWN_KIND}json: {why}")));
    let members = match tree {
        Value::Null => return Ok(()),
        Value::Object(members) => members,
        other => {
            let found = other.type_name();
            return refuse(&format!("cannot unmarshal {found} into Go value of type {TOP}"));
        }
    };
    // Go matches the names of these two members without regard to case.
    let (mut kind, mut api_version) = (KIND, "meta.k8s.io/v1");
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let (name, variable) = match name {
            name if name.eq_ignore_ascii_case("kind") => ("kind", &mut kind),
            name if name.eq_ignore_ascii_case("apiVersion") => ("apiVersion", &mut api_version),
            _ => continue,
        };
        match value.as_str() {
            Some("") => {}
            Some(text) => *variable = text,
            None => {
                let found = value.type_name();
                return refuse(&format!(
                    "cannot unmarshal {found} into Go struct field .{name} of type string"
                ));
            }
        }
    }
    let is_known = UNVERSIONED.contains(&kind)
        || api_version == "meta.k8s.io/v1" && META_KINDS.contains(&kind);
    match kind {
        KIND => Ok(()),
        _ if is_known => {
            let why = format!("converting (v1.{kind}) to (v1.{KIND}): unknown conversion");
            Err(Status::bad_request(why))
        }
        _ => Err(Status::bad_request(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/runtime/scheme.go:111\""
        ))),
    }
}

/// The kinds that are the same in every version.
const UNVERSIONED: [&str; 5] =
    ["Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"];
/// The kinds of `meta.k8s.io/v1`, except DeleteOptions.
const META_KINDS: [&str; 8] = [
    "CreateOptions",
    "GetOptions",
    "ListOptions",
    "PartialObjectMetadata",
    "PartialObjectMetadataList",
    "PatchOptions",
    "Table",
    "UpdateOptions",
];

const TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Decodes the options from Protobuf to the tree of their JSON.
fn message(body: &[u8]) -> Result<Value, pintle_schema::Error> {
    let schema = pintle_schema::builtin();
    let ty = schema.find(TYPE).expect("the built-in table has DeleteOptions");
    pintle_schema::protobuf::decode(schema, ty, body)
}

fn member<'a>(tree: &'a Value, key: &str) -> Option<&'a Value> {
    tree.get(key).filter(|value| !value.is_null())
}

fn read<T>(
    tree: &Value,
    key: &str,
    go_type: &str,
    convert: fn(&Value) -> Option<T>,
) -> Result<Option<T>, Status> {
    let Some(value) = member(tree, key) else { return Ok(None) };
    convert(value).map(Some).ok_or_else(|| type_error(value, key, go_type))
}

fn read_text(tree: &Value, path: &[&str]) -> Result<Option<String>, Status> {
    let mut node = tree;
    for (depth, key) in path.iter().enumerate() {
        if !matches!(node, Value::Object(_)) {
            return Err(type_error(node, &path[..depth].join("."), "v1.Preconditions"));
        }
        match member(node, key) {
            None => return Ok(None),
            Some(value) => node = value,
        }
    }
    let text = node.as_str().ok_or_else(|| type_error(node, &path.join("."), "string"))?;
    Ok(Some(text.to_owned()))
}

fn texts(list: &Value) -> Result<Vec<String>, Status> {
    let items = list.as_array().ok_or_else(|| type_error(list, "dryRun", "[]string"))?;
    let text = |item: &Value| item.as_str().map(str::to_owned);
    items.iter().map(|i| text(i).ok_or_else(|| type_error(i, "dryRun", "string"))).collect()
}

/// A 400 with the text of Go's JSON decoder.
fn type_error(found: &Value, field: &str, go_type: &str) -> Status {
    let found = match found {
        Value::Float(_) if go_type == "int64" => format!("number {}", json::to_string(found)),
        found => found.type_name().to_owned(),
    };
    Status::bad_request(format!(
        "json: cannot unmarshal {found} into Go struct field {KIND}.{field} of type {go_type}"
    ))
}

impl Raw {
    fn check(self) -> Result<DeleteOptions, Status> {
        let mut errors = field::Errors::new();
        let path = Path::new("propagationPolicy");
        let policy = self.propagation_policy.as_deref();
        if let (Some(policy), Some(_)) = (policy, self.orphan_dependents) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(field::Error::invalid(&path, &Value::from(policy), why));
        }
        let propagation = match policy {
            None => None,
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                errors.push(field::Error::not_supported(&path, &Value::from(other), POLICIES));
                None
            }
        };
        let values: Vec<&str> = self.dry_run.iter().map(String::as_str).collect();
        let dry_run = dry_run(&values, &mut errors);
        refuse(KIND, &errors)?;
        Ok(DeleteOptions {
            dry_run,
            grace_period_seconds: self.grace_period_seconds,
            uid: self.uid.map(Into::into),
            resource_version: self.resource_version.map(Into::into),
            propagation,
            orphan_dependents: self.orphan_dependents,
            ignore_read_errors: self.ignore_read_errors == Some(true),
        })
    }
}
