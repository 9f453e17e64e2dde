//! The providers of a rule, with their keys.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pintle_meta::{duration, field};
use pintle_value::{Path, Value};
use zeroize::Zeroizing;

use super::Reader;

const NAMES: [&str; 5] = ["aesgcm", "aescbc", "secretbox", "identity", "kms"];

/// The default timeout of a plugin.
const KMS_TIMEOUT: Duration = Duration::from_secs(3);

/// How values are encrypted.
#[derive(Debug)]
pub enum Provider {
    /// AES-GCM, with keys of 16, 24 or 32 bytes.
    AesGcm(Vec<Key>),
    /// AES-CBC, with keys of 16, 24 or 32 bytes.
    AesCbc(Vec<Key>),
    /// XSalsa20 and Poly1305, with keys of 32 bytes.
    Secretbox(Vec<Key>),
    /// No encryption.
    Identity,
    /// Envelope encryption: a plugin encrypts the seeds of the keys.
    Kms(Kms),
}

/// A key and its name, which is part of the prefix of values.
pub struct Key {
    /// Not empty.
    pub name: String,
    /// The bytes, wiped when this is dropped.
    pub secret: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A plugin of the Key Management Service's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kms {
    /// The version: `v1` or `v2`.
    pub version: String,
    /// The name, which is part of the prefix of values.
    pub name: String,
    /// `unix://` and a path; `@` begins an abstract name.
    pub endpoint: String,
    /// The timeout of a call.
    pub timeout: Duration,
}

impl Reader {
    pub(super) fn provider(&mut self, element: &Value, at: &Path) -> Option<Provider> {
        self.check_members(element, at, &NAMES);
        let is_set = |name: &&&str| element.get(name).is_some_and(|value| !value.is_null());
        let found: Vec<&str> = NAMES.iter().filter(is_set).copied().collect();
        let [name] = found[..] else {
            let why = match found[..] {
                [] => {
                    "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, \
                     Secretbox, Identity"
                }
                _ => {
                    "more than one provider specified in a single element, should split into different \
                     list elements"
                }
            };
            // Only the names: upstream shows the whole element with its secrets.
            let shown = Value::Array(found.into_iter().map(Value::from).collect());
            self.errors.push(field::Error::invalid(at, &shown, why));
            return None;
        };
        let (value, at) = (element.get(name)?, at.field(name));
        Some(match name {
            "aesgcm" => Provider::AesGcm(self.keys(value, &at, &[16, 24, 32])),
            "aescbc" => Provider::AesCbc(self.keys(value, &at, &[16, 24, 32])),
            "secretbox" => Provider::Secretbox(self.keys(value, &at, &[32])),
            "identity" => {
                self.check_members(value, &at, &[]);
                Provider::Identity
            }
            _ => Provider::Kms(self.kms(value, &at)),
        })
    }

    fn keys(&mut self, element: &Value, at: &Path, lengths: &[usize]) -> Vec<Key> {
        self.check_members(element, at, &["keys"]);
        let at = at.field("keys");
        let listed = self.list(element, "keys", &at);
        if listed.is_empty() {
            self.errors.push(field::Error::required(&at, "at least one keys is required"));
        }
        let mut keys = Vec::new();
        for (index, key) in listed.iter().enumerate() {
            keys.extend(self.key(key, &at.index(index), lengths));
        }
        keys
    }

    fn key(&mut self, element: &Value, at: &Path, lengths: &[usize]) -> Option<Key> {
        self.check_members(element, at, &["name", "secret"]);
        let name = self.member(element, "name", at);
        if name.is_empty() {
            let why = "name is a mandatory field for a key";
            self.errors.push(field::Error::required(&at.field("name"), why));
        }
        let text = self.secret(element, "secret", at);
        let at = at.field("secret");
        if text.is_empty() {
            let why = "secret is a mandatory field for a key";
            self.errors.push(field::Error::required(&at, why));
            return None;
        }
        let Ok(secret) = BASE64_STANDARD.decode(text.as_bytes()).map(Zeroizing::new) else {
            let why = "secrets must be base64 encoded";
            self.errors.push(field::Error::invalid(&at, &"REDACTED".into(), why));
            return None;
        };
        if !lengths.contains(&secret.len()) {
            let expected: Vec<String> = lengths.iter().map(usize::to_string).collect();
            let why = format!(
                "secret is not of the expected length, got {}, expected one of [{}]",
                secret.len(),
                expected.join(" ")
            );
            self.errors.push(field::Error::invalid(&at, &"REDACTED".into(), why));
            return None;
        }
        Some(Key { name, secret })
    }

    fn kms(&mut self, element: &Value, at: &Path) -> Kms {
        self.check_members(
            element,
            at,
            &["apiVersion", "name", "cachesize", "endpoint", "timeout"],
        );
        let mut version = self.member(element, "apiVersion", at);
        if version.is_empty() {
            version = "v1".to_owned(); // upstream's default
        }
        let name = self.member(element, "name", at);
        self.kms_name(&name, &version, &at.field("name"));
        let timeout = self.kms_timeout(element, &at.field("timeout"));
        let endpoint = self.member(element, "endpoint", at);
        self.kms_endpoint(&endpoint, &at.field("endpoint"));
        self.kms_cache_size(element.get("cachesize"), &version, &at.field("cachesize"));
        if version != "v1" && version != "v2" {
            let why =
                "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
            let at = at.field("apiVersion");
            self.errors.push(field::Error::invalid(&at, &version.as_str().into(), why));
        }
        self.kms_names.insert(name.clone());
        Kms { version, name, endpoint, timeout }
    }

    fn kms_name(&mut self, name: &str, version: &str, at: &Path) {
        if name.is_empty() {
            let why = "name is a mandatory field for a provider";
            self.errors.push(field::Error::required(at, why));
        }
        if version != "v1" && name.contains(':') {
            let why = format!("invalid KMS provider name {name}, must not contain ':'");
            self.errors.push(field::Error::invalid(at, &name.into(), why));
        }
        let is_unique = self.reloaded || version != "v1";
        if is_unique && self.kms_names.contains(name) {
            let why = format!("duplicate KMS provider name {name}, names must be unique");
            self.errors.push(field::Error::invalid(at, &name.into(), why));
        }
    }

    fn kms_timeout(&mut self, element: &Value, at: &Path) -> Duration {
        let Some(value) = element.get("timeout").filter(|value| !value.is_null()) else {
            return KMS_TIMEOUT;
        };
        match duration::parse(value.as_str().unwrap_or_default()).map(u64::try_from) {
            Ok(Ok(nanoseconds)) if nanoseconds > 0 => Duration::from_nanos(nanoseconds),
            Ok(_) => {
                let why = "timeout should be a positive value";
                self.errors.push(field::Error::invalid(at, value, why));
                KMS_TIMEOUT
            }
            Err(why) => {
                self.malformed.push(format!("{:?}: {why}", at.as_str()));
                KMS_TIMEOUT
            }
        }
    }

    fn kms_endpoint(&mut self, endpoint: &str, at: &Path) {
        if endpoint.is_empty() {
            let shown = "".into();
            let why = "endpoint is a mandatory field for a kms";
            return self.errors.push(field::Error::invalid(at, &shown, why));
        }
        let scheme = endpoint.split_once(':').map_or("", |(scheme, _)| scheme);
        if scheme != "unix" {
            let why =
                format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported");
            self.errors.push(field::Error::invalid(at, &endpoint.into(), why));
        }
    }

    fn kms_cache_size(&mut self, size: Option<&Value>, version: &str, at: &Path) {
        let why = match size {
            None | Some(Value::Null) => return,
            Some(_) if version != "v1" => "cachesize is not supported in v2",
            Some(Value::Int(0)) => "cachesize should be a positive value, or negative to disable",
            Some(_) => return,
        };
        self.errors.push(field::Error::invalid(at, size.unwrap_or(&Value::Null), why));
    }
}
