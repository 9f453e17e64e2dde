//! Values and their stored forms, among them those of a kube-apiserver and manipulated ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its values has nothing to say")]

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use pintle_encryption::{Configuration, Envelope, Error, Kms, Providers};
use pintle_store::{Key, TransformError, Transformed, Transformer};
use pintle_value::{Value, json};

/// Secrets as kube-apiserver v1.36.3 stored them with a key of 32 letters `k`, one per line: the
/// path, the stored bytes in base64, and a part of the value.
const STORED: &str = include_str!("stored.jsonl");

const SECRET: &str = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";
const PATH: &[u8] = b"/registry/secrets/default/a";
const OTHER_PATH: &[u8] = b"/registry/secrets/default/b";

fn no_plugins(_: &Kms) -> Result<Arc<Envelope>, Error> {
    Err(Error::KeyService("there are no plugins here".to_owned()))
}

fn key() -> Key {
    Key { collection: "secrets".into(), item: "default/a".into() }
}

/// Creates providers in this order for secrets, each with keys of these names.
fn providers(methods: &[&str], keys: &[&str]) -> Providers {
    let keys: Vec<String> =
        keys.iter().map(|name| format!("{{name: {name}, secret: {SECRET}}}")).collect();
    let rows = methods.iter().map(|method| match *method {
        "identity" => "  - identity: {}\n".to_owned(),
        method => format!("  - {method}: {{keys: [{}]}}\n", keys.join(", ")),
    });
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n\
         - resources: [secrets]\n  providers:\n{}",
        rows.collect::<String>()
    );
    let configuration = Configuration::read(text.as_bytes(), false).unwrap();
    Providers::new(&configuration, &no_plugins).unwrap()
}

fn read(providers: &Providers, path: &[u8], stored: &[u8]) -> Result<Transformed, TransformError> {
    providers.to_value(&key(), path, Bytes::copy_from_slice(stored))
}

fn write(providers: &Providers, value: &[u8]) -> Bytes {
    providers.to_storage(&key(), PATH, Bytes::copy_from_slice(value)).unwrap()
}

#[test]
fn values_of_kube_apiserver_are_read() {
    let all = ["aescbc", "aesgcm", "secretbox", "identity"];
    for line in STORED.lines() {
        let row = json::parse(line.as_bytes()).unwrap();
        let text = |member: &str| row.get(member).and_then(Value::as_str).unwrap();
        let stored = BASE64_STANDARD.decode(text("stored")).unwrap();
        let (path, part) = (text("path").as_bytes(), text("part").as_bytes());
        let method = text("method");
        let own = format!("{method}-key");
        let rest: Vec<&str> = all.iter().copied().filter(|other| *other != method).collect();
        let first = [&[method], &rest[..]].concat();
        for (methods, keys, is_stale) in [
            (&first[..], &[&*own, "other"][..], false),
            (&first, &["other", &own], method != "identity"),
            (&rest, &[&own], true),
        ] {
            match read(&providers(methods, keys), path, &stored) {
                Err(why) => assert!(!methods.contains(&method), "{why}"),
                Ok(read) => {
                    assert!(read.value.starts_with(b"k8s\0"), "{method}");
                    assert!(read.value.windows(part.len()).any(|found| found == part), "{method}");
                    assert_eq!(read.is_stale, is_stale, "{method}");
                }
            }
        }
        let elsewhere = read(&providers(&first, &[&own]), OTHER_PATH, &stored);
        assert_eq!(elsewhere.is_err(), method == "aesgcm", "only AES-GCM binds values to paths");
    }
    assert_eq!(STORED.lines().count(), 4);
}

#[test]
fn written_values_can_be_read() {
    for (method, prefix) in [
        ("aescbc", "k8s:enc:aescbc:v1:k:"),
        ("aesgcm", "k8s:enc:aesgcm:v1:k:"),
        ("secretbox", "k8s:enc:secretbox:v1:k:"),
        ("identity", ""),
    ] {
        let providers = providers(&[method], &["k", "other"]);
        for len in [0, 1, 15, 16, 17, 31, 32, 1000, 3 << 20] {
            let value = vec![7; len];
            let stored = write(&providers, &value);
            assert!(stored.starts_with(prefix.as_bytes()), "{method}");
            let read = read(&providers, PATH, &stored).unwrap();
            assert!(read.value == value && !read.is_stale, "{method}, {len}");
            assert!(
                method == "identity" || write(&providers, &value) != stored,
                "{method} is random"
            );
        }
    }
}

/// A manipulated value causes an error, unless its method cannot detect the change; it never causes
/// a panic.
#[test]
fn hostile_values() {
    let value = b"{\"kind\":\"Secret\",\"data\":{\"a\":\"0123456789abcdef\"}}";
    for method in ["aescbc", "aesgcm", "secretbox"] {
        let providers = providers(&[method, "identity"], &["k"]);
        let stored = write(&providers, value);
        for len in 0..stored.len() {
            let cut = read(&providers, PATH, &stored[..len]);
            // Without its prefix, a value is plain. CBC does not authenticate, and can only detect
            // most cuts by the padding.
            let is_plain = len < b"k8s:enc:".len();
            let is_refused = cut.as_ref().is_err_and(|why| !why.0.is_empty());
            let is_other = cut.is_ok_and(|read| read.value[..] != value[..]);
            assert!(is_refused || is_other && (is_plain || method == "aescbc"), "{method}, {len}");
        }
        let prefix = format!("k8s:enc:{method}:v1:k:").len();
        for position in (prefix..stored.len()).filter(|_| method != "aescbc") {
            let mut changed = stored.to_vec();
            changed[position] ^= 1;
            assert!(read(&providers, PATH, &changed).is_err(), "{method}, {position}");
        }
        let elsewhere = read(&providers, OTHER_PATH, &stored);
        assert_eq!(elsewhere.is_err(), method == "aesgcm", "{method}");
    }
}

#[test]
fn errors_are_upstreams() {
    let (gcm, cbc) = (providers(&["aesgcm"], &["k"]), providers(&["aescbc"], &["k"]));
    let (boxed, plain) = (providers(&["secretbox"], &["k"]), providers(&["identity"], &[]));
    for (providers, stored, why) in [
        (&gcm, "{}", "no matching prefix found"),
        (&gcm, "k8s:enc:aescbc:v1:k:0123", "no matching prefix found"),
        (
            &gcm,
            "k8s:enc:aesgcm:v1:other:0123",
            "no matching key was found for the provided AES transformer",
        ),
        (&gcm, "k8s:enc:aesgcm:v1:k:0123", "the stored data was shorter than the required size"),
        (
            &gcm,
            "k8s:enc:aesgcm:v1:k:0123456789abcdef0123456789abcdef",
            "cipher: message authentication failed",
        ),
        (
            &cbc,
            "k8s:enc:aescbc:v1:k:0123456789abcdef0",
            "the stored data is not a multiple of the block size",
        ),
        (&cbc, "k8s:enc:aescbc:v1:k:0123456789abcdef", "invalid PKCS7 data (empty or not padded)"),
        (
            &boxed,
            "k8s:enc:secretbox:v1:other:0",
            "no matching key was found for the provided Secretbox transformer",
        ),
        (
            &boxed,
            "k8s:enc:secretbox:v1:k:0123456789abcdef0123456789abcdef0123456789abcdef",
            "output array was not large enough for encryption",
        ),
        (&plain, "k8s:enc:aesgcm:v1:k:0123", "no matching prefix found"),
    ] {
        let Err(TransformError(message)) = read(providers, PATH, stored.as_bytes()) else {
            panic!("{stored} was read");
        };
        assert_eq!(message, why, "{stored}");
    }
}

/// Rules with wildcards, and resources without a rule. upstream: `TestWildcardMasking` and
/// `TestEncryptAll` of the tests of `encryptionconfig`.
#[test]
fn the_most_specific_rule_applies() {
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n\
         - {{resources: [events], providers: [{{identity: {{}}}}]}}\n\
         - {{resources: [configmaps, deployments.apps], providers: [{{aesgcm: {{keys: [{{name: one, secret: \
         {SECRET}}}]}}}}]}}\n\
         - {{resources: ['*.apps'], providers: [{{aesgcm: {{keys: [{{name: two, secret: {SECRET}}}]}}}}]}}\n\
         - {{resources: ['*.*'], providers: [{{aesgcm: {{keys: [{{name: all, secret: {SECRET}}}]}}}}]}}\n"
    );
    let configuration = Configuration::read(text.as_bytes(), false).unwrap();
    let providers = Providers::new(&configuration, &no_plugins).unwrap();
    for (collection, name) in [
        ("events", None),
        ("configmaps", Some("one")),
        ("apps/deployments", Some("one")),
        ("apps/statefulsets", Some("two")),
        ("secrets", Some("all")),
        ("example.com/widgets", Some("all")),
        ("masterleases", None),
    ] {
        let key = Key { collection: collection.into(), item: "a".into() };
        let stored = providers.to_storage(&key, PATH, Bytes::from_static(b"{}")).unwrap();
        match name {
            None => assert_eq!(stored, &b"{}"[..], "{collection}"),
            Some(name) => {
                let prefix = format!("k8s:enc:aesgcm:v1:{name}:");
                assert!(stored.starts_with(prefix.as_bytes()), "{collection}");
            }
        }
    }
}
