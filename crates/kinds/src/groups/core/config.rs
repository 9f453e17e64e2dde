//! ConfigMaps and Secrets.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use pintle_meta::field::{Error, Errors};
use pintle_value::{Map, Path, Value};

use crate::{
    checks::{frozen, members, path, same, unchanged},
    defaults::{
        Constant::Text,
        Row::{Do, Empty},
        set,
    },
    formats::config_key,
    pem,
    strategy::{PLAIN, Strategy, selectable},
};

/// The maximal length of all values of a ConfigMap or Secret together, in bytes.
const DATA_LENGTH_MAX: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) const CONFIG_MAP: Strategy = Strategy {
    validate: |new, old| {
        let mut errors = data_unchanged(new, old, &["data", "binaryData"]);
        let (data, binary) = (members(new, &["data"]), members(new, &["binaryData"]));
        for (name, keys) in [("data", data), ("binaryData", binary)] {
            check_keys(keys, &Path::new(name), &mut errors);
            for key in keys.keys().filter(|key| name == "data" && binary.contains_key(key)) {
                let path = Path::new(name).key(key);
                let words = "duplicate of key present in binaryData";
                errors.push(Error::invalid(&path, &Value::from(key.as_str()), words));
            }
        }
        if length(data, str::len) + length(binary, decoded_length) > DATA_LENGTH_MAX {
            // Upstream's path to the object itself reads `[]`.
            errors.push(Error::too_long(&Path::root().key(""), DATA_LENGTH_MAX));
        }
        errors
    },
    ..PLAIN
};

pub(super) const SECRET: Strategy = Strategy {
    fields: &[selectable!("type" at "type")],
    default: |object| set(object, &[Do(merge_string_data), Empty("type", Text("Opaque"))]),
    validate: |new, old| {
        let mut errors = unchanged(new, old, &[frozen(&["type"])]);
        errors.extend(data_unchanged(new, old, &["data"]));
        let data = members(new, &["data"]);
        check_keys(data, &Path::new("data"), &mut errors);
        if length(data, decoded_length) > DATA_LENGTH_MAX {
            errors.push(Error::too_long(&Path::new("data"), DATA_LENGTH_MAX));
        }
        check_type(new, &mut errors);
        errors
    },
    warnings: |secret, _| {
        if secret.str_at(&["type"]) != Some("kubernetes.io/tls") {
            return Vec::new();
        }
        let [certificate, key] = ["tls.crt", "tls.key"].map(|member| {
            let text = members(secret, &["data"]).get(member).and_then(Value::as_str);
            let bytes = BASE64.decode(text.unwrap_or_default()).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        wrong_pair(&pem::kinds(&certificate), &pem::kinds(&key)).into_iter().collect()
    },
    ..PLAIN
};

/// Returns why the PEM blocks are not those of a certificate and a key. Whether the key belongs to
/// the certificate is not checked.
fn wrong_pair(certificate: &[&str], key: &[&str]) -> Option<String> {
    let is_key = |kind: &&str| *kind == "PRIVATE KEY" || kind.ends_with(" PRIVATE KEY");
    let among = |kinds: &[&str]| {
        format!("after skipping PEM blocks of the following types: [{}]", kinds.join(" "))
    };
    let (certified, keyed) = (certificate.contains(&"CERTIFICATE"), key.iter().any(is_key));
    let wrong = match (certified, certificate, keyed, key) {
        (false, [], ..) => "failed to find any PEM data in certificate input".to_owned(),
        (false, [one], ..) if one.ends_with("PRIVATE KEY") => {
            "failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may \
             have been switched"
                .to_owned()
        }
        (false, kinds, ..) => {
            format!("failed to find \"CERTIFICATE\" PEM block in certificate input {}", among(kinds))
        }
        (true, _, false, []) => "failed to find any PEM data in key input".to_owned(),
        (true, _, false, ["CERTIFICATE"]) => {
            "found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        (true, _, false, kinds) => format!(
            "failed to find PEM block with type ending in \"PRIVATE KEY\" in key input {}",
            among(kinds)
        ),
        (true, _, true, _) => return None,
    };
    Some(format!("tls: {wrong}"))
}

/// Encodes `stringData` into `data`, replacing existing keys, and removes it: clients can write
/// `stringData`, but never read it.
fn merge_string_data(secret: &mut Map) {
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    let encoded = |text: Value| BASE64.encode(text.as_str().unwrap_or_default()).into();
    let texts = texts.into_iter().map(|(key, text)| (key, encoded(text)));
    let data = secret.entry_object("data");
    // Of equal keys the last one wins.
    *data = std::mem::take(data).into_iter().chain(texts).collect();
}

/// Checks that an immutable object stays immutable and keeps its data.
fn data_unchanged(new: &Value, old: Option<&Value>, data: &[&str]) -> Errors {
    let is_immutable = |object: &Value| object.get("immutable").and_then(Value::as_bool);
    let Some(old) = old.filter(|old| is_immutable(old) == Some(true)) else { return Errors::new() };
    let mut errors = Errors::new();
    if is_immutable(new) != Some(true) {
        errors.push(Error::forbidden(&path(&["immutable"]), FROZEN));
    }
    // As in Go, an empty map of bytes is not equal to an absent one; it is stored as absent.
    let is_empty =
        |member: &str| new.get(member).and_then(Value::as_object).is_some_and(Map::is_empty);
    let changed =
        data.iter().filter(|member| !same(new.get(member), old.get(member)) || is_empty(member));
    errors.extend(changed.map(|member| Error::forbidden(&path(&[member]), FROZEN)));
    errors
}

fn check_keys(data: &Map, path: &Path, errors: &mut Errors) {
    for key in data.keys() {
        let wrong = config_key(key);
        errors.extend(
            wrong
                .into_iter()
                .map(|w| Error::invalid(&path.key(key), &Value::from(key.as_str()), w)),
        );
    }
}

/// Checks the keys or the annotation that a secret's type requires.
fn check_type(secret: &Value, errors: &mut Errors) {
    let data = members(secret, &["data"]);
    let path = |key: &str| Path::new("data").key(key);
    let mut need = |keys: &[&str]| {
        let missing = keys.iter().filter(|key| !data.contains_key(key));
        errors.extend(missing.map(|key| Error::required(&path(key), "")));
    };
    match secret.str_at(&["type"]).unwrap_or_default() {
        "kubernetes.io/dockercfg" => check_json(data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => check_json(data, ".dockerconfigjson", errors),
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"]),
        "kubernetes.io/ssh-auth"
            if data.get("ssh-privatekey").and_then(Value::as_str).is_none_or(str::is_empty) =>
        {
            errors.push(Error::required(&path("ssh-privatekey"), ""));
        }
        "kubernetes.io/basic-auth"
            if !data.contains_key("username") && !data.contains_key("password") =>
        {
            need(&["username", "password"]);
        }
        "kubernetes.io/service-account-token" => {
            const NAME: &str = "kubernetes.io/service-account.name";
            let account = pintle_meta::object::annotations(secret).and_then(|a| a.get(NAME));
            if account.and_then(Value::as_str).unwrap_or_default().is_empty() {
                let path = self::path(&["metadata", "annotations"]).key(NAME);
                errors.push(Error::required(&path, ""));
            }
        }
        _ => {}
    }
}

/// Checks that a key exists and that its value is a JSON object (or `null`), which messages do not
/// show.
fn check_json(data: &Map, key: &str, errors: &mut Errors) {
    let path = Path::new("data").key(key);
    let Some(text) = data.get(key).and_then(Value::as_str) else {
        return errors.push(Error::required(&path, ""));
    };
    let wrong = match pintle_value::json::parse(&BASE64.decode(text).unwrap_or_default()) {
        Err(error) => error.to_string(),
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let kind = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
        }
    };
    errors.push(Error::invalid(&path, &Value::from("<secret contents redacted>"), wrong));
}

fn length(data: &Map, of: fn(&str) -> usize) -> usize {
    data.values().filter_map(Value::as_str).map(of).sum()
}

/// The number of bytes that base64 text encodes.
fn decoded_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}
