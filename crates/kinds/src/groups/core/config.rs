//! ConfigMaps and Secrets.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use pintle_meta::field::Error;
use pintle_value::{Map, Path, Value};

use crate::{
    checks::{frozen, members, path, same, unchanged},
    defaults::{
        Constant::Text,
        Row::{Do, Empty},
        set,
    },
    strategy::{PLAIN, Strategy, selectable},
};

/// All values of a ConfigMap or Secret together may be so long, in bytes.
const DATA_LENGTH_MAX: usize = 1024 * 1024;
const KEY_LENGTH_MAX: usize = 253;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) const CONFIG_MAP: Strategy = Strategy {
    validate: |new, old| {
        let mut errors = data_unchanged(new, old, &["data", "binaryData"]);
        let (data, binary) = (members(new, &["data"]), members(new, &["binaryData"]));
        for (name, keys, other, words) in [
            ("data", data, binary, "duplicate of key present in binaryData"),
            ("binaryData", binary, data, "duplicate of key present in data"),
        ] {
            check_keys(keys, &Path::new(name), &mut errors);
            for key in keys.keys().filter(|key| other.contains_key(key)) {
                let path = Path::new(name).key(key);
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
    ..PLAIN
};

/// The keys that secrets of a type must have.
const REQUIRED_KEYS: &[(&str, &[&str])] = &[
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
];

/// `stringData` is `data` for people: it is written over it, and never read back.
fn merge_string_data(secret: &mut Map) {
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    let data = secret.entry_object("data");
    for (key, text) in texts {
        data.insert(key, BASE64.encode(text.as_str().unwrap_or_default()));
    }
}

/// `immutable: true` cannot be taken back, and freezes the data.
fn data_unchanged(new: &Value, old: Option<&Value>, data: &[&str]) -> Vec<Error> {
    let is_immutable = |object: &Value| object.get("immutable").and_then(Value::as_bool);
    let Some(old) = old.filter(|old| is_immutable(old) == Some(true)) else { return Vec::new() };
    let mut errors = Vec::new();
    if is_immutable(new) != Some(true) {
        errors.push(Error::forbidden(&path(&["immutable"]), FROZEN));
    }
    let changed = data.iter().filter(|member| !same(new.get(member), old.get(member)));
    errors.extend(changed.map(|member| Error::forbidden(&path(&[member]), FROZEN)));
    errors
}

fn check_keys(data: &Map, path: &Path, errors: &mut Vec<Error>) {
    for key in data.keys() {
        let wrong = wrong_key(key);
        errors.extend(
            wrong
                .into_iter()
                .map(|w| Error::invalid(&path.key(key), &Value::from(key.as_str()), w)),
        );
    }
}

/// What is wrong with a key, which is to be a file's name.
fn wrong_key(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if key.len() > KEY_LENGTH_MAX {
        wrong.push(format!("must be no more than {KEY_LENGTH_MAX} characters"));
    }
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if key.is_empty() || !key.bytes().all(is_allowed) {
        wrong.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

fn check_type(secret: &Value, errors: &mut Vec<Error>) {
    let data = members(secret, &["data"]);
    let kind = secret.str_at(&["type"]).unwrap_or_default();
    let required = REQUIRED_KEYS.iter().filter(|(of, _)| *of == kind).flat_map(|(_, keys)| *keys);
    for key in required.filter(|key| !data.contains_key(key)) {
        errors.push(Error::required(&Path::new("data").key(key), ""));
    }
    match kind {
        "kubernetes.io/basic-auth" => {
            let keys = ["username", "password"];
            if !keys.iter().any(|key| data.contains_key(key)) {
                let missing = |key: &&str| Error::required(&Path::new("data").key(key), "");
                errors.extend(keys.iter().map(missing));
            }
        }
        "kubernetes.io/service-account-token" => {
            const NAME: &str = "kubernetes.io/service-account.name";
            let account = pintle_meta::object::annotations(secret).and_then(|a| a.get(NAME));
            if account.and_then(Value::as_str).unwrap_or_default().is_empty() {
                let path = path(&["metadata", "annotations"]).key(NAME);
                errors.push(Error::required(&path, ""));
            }
        }
        _ => {}
    }
}

fn length(data: &Map, of: fn(&str) -> usize) -> usize {
    data.values().filter_map(Value::as_str).map(of).sum()
}

/// How many bytes base64 text stands for.
fn decoded_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::wrong_key;

    #[test]
    fn keys_are_names_of_files() {
        for key in ["a", "A.b-c_d", ".hidden", "...x"] {
            assert_eq!(wrong_key(key).is_empty(), !key.starts_with(".."), "{key}");
        }
        for key in ["", "a/b", "a b", ".", "..", "..x", "ü", &"x".repeat(254)] {
            assert!(!wrong_key(key).is_empty(), "{key}");
        }
    }
}
