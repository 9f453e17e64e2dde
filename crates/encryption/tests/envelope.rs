//! Envelope encryption with a plugin that is a function. upstream:
//! `apiserver/pkg/storage/value/encrypt/envelope/kmsv2/envelope_test.go`.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its values has nothing to say")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use pintle_encryption::{
    Configuration, Envelope, Error, KeyService, Kms, Providers, SealedSource, Seed,
};
use pintle_store::{Key, TransformError, Transformed, Transformer};
use pintle_value::{Value, json};
use zeroize::Zeroizing;

const PATH: &[u8] = b"/registry/secrets/default/a";

/// A secret as kube-apiserver v1.36.3 stored it at `/registry/secrets/default/kms-ref`, in base64,
/// and the seed that its plugin returns.
const STORED: &str = "azhzOmVuYzprbXM6djI6dmF1bHQ6CpkCX2Ql+ZNr4uBWL4+aPa2dStJvr0K9W0Tgjs2J6rQM/ry3XpqPufQg/hrRynTjRjrA\
    425PxDly8vDSJw8JIafQvMABpHS75raiXIZQ0VG2hMWH1HWCXEosadhVBEFQTzGpfIssj1RrhSA3plS96llU/rs9V9z791CV\
    10m7RstbMshLfEN2Sp60Ocve+MckG93ke52pmGtL31D8/V6g+lbC5iLSK4/eqK5FmbbJDxHxX6kJGoDKpLhFOC/TejZwwo6s\
    FrtlCAeUnOEQcd4bzCVgtNYupubNlGec2ss7A7p1SiN05ULvo4NnNsq5XKMlgPHvTePyliGms2kOSsl6YZx+LAEZYpZcwGO8\
    iTQtUjl/+hRIDlrmkJZr7ZoSATEaPAK3xbqT9WkRTGuo17FAr+X1Ekk7jqS9heRvXV0xX4GaBFIk+W3FT8JahiG+zlwoB+56\
    lFZOSiEzzYpopCIXChJwbHVnaW4uZXhhbXBsZS5jb20SAWEoAQ==";
const STORED_SEED: &str = "NPhjNvHSzNoGHvxYMTUzxftzmRnvr9lv9P4OnvFi6aU=";

/// Returns the seed of a kube-apiserver.
#[derive(Debug)]
struct Recorded;

impl KeyService for Recorded {
    fn unseal(&self, sealed: &SealedSource) -> Result<Zeroizing<Vec<u8>>, String> {
        assert_eq!(sealed.key_id, "1");
        assert_eq!(sealed.annotations["plugin.example.com"], "a");
        Ok(Zeroizing::new(BASE64_STANDARD.decode(STORED_SEED).unwrap()))
    }
}

#[test]
fn a_value_of_kube_apiserver_is_read() {
    let (_, providers) = start(Arc::new(Recorded), "2");
    let stored = Bytes::from(BASE64_STANDARD.decode(STORED).unwrap());
    let read = read(&providers, b"/registry/secrets/default/kms-ref", &stored).unwrap();
    assert!(read.is_stale && read.value.starts_with(b"k8s\0"));
    assert!(read.value.windows(7).any(|part| part == b"vaulted"));
}

/// The values that two kube-apiservers stored for a secret, with a plugin that seals by base64:
/// v1.27.0 with a key, v1.28.0 with a seed. Each line is one value.
const LEGACY: &str = include_str!("kms_legacy.jsonl");

/// Unseals base64.
#[derive(Debug)]
struct Base64;

impl KeyService for Base64 {
    fn unseal(&self, sealed: &SealedSource) -> Result<Zeroizing<Vec<u8>>, String> {
        assert_eq!(sealed.key_id, "1");
        assert_eq!(sealed.annotations["local-kek.kms.kubernetes.io"], "encrypted-local-kek");
        Ok(Zeroizing::new(BASE64_STANDARD.decode(&sealed.bytes).unwrap()))
    }
}

/// upstream: `TestKMSv2ProviderLegacyData` of `test/integration/controlplane/transformation`.
#[test]
fn values_of_old_releases_are_read() {
    let (_, providers) = start_named("kms-provider", Arc::new(Base64), "1");
    for line in LEGACY.lines() {
        let row = json::parse(line.as_bytes()).unwrap();
        let text = |member: &str| row.get(member).and_then(Value::as_str).unwrap();
        let stored = Bytes::from(BASE64_STANDARD.decode(text("stored")).unwrap());
        let read = read(&providers, text("path").as_bytes(), &stored).unwrap();
        let name = text("path").rsplit('/').next().unwrap();
        for part in [name, "api_key", "086a7ffc-0225-11e8-ba89-0ed5f89f718b"] {
            assert!(read.value.windows(part.len()).any(|found| found == part.as_bytes()), "{part}");
        }
        // A value of the plugin's own key is stale only where it was not written with a seed.
        assert_eq!(read.is_stale, name.ends_with("key"), "{name}");
    }
    assert_eq!(LEGACY.lines().count(), 2);
}

/// Unseals by inverting each bit; counts the calls.
#[derive(Debug, Default)]
struct Plugin(AtomicUsize);

impl KeyService for Plugin {
    fn unseal(&self, sealed: &SealedSource) -> Result<Zeroizing<Vec<u8>>, String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        if sealed.key_id == "lost" {
            return Err("rpc error: code = NotFound desc = no such key".to_owned());
        }
        Ok(Zeroizing::new(sealed.bytes.iter().map(|byte| !byte).collect()))
    }
}

fn sealed(seed: &Seed, key_id: &str) -> SealedSource {
    SealedSource {
        key_id: key_id.to_owned(),
        bytes: seed.bytes().iter().map(|byte| !byte).collect(),
        annotations: BTreeMap::from([("a.example".to_owned(), Bytes::from_static(b"data"))]),
    }
}

/// Creates an envelope that writes with a key of the plugin, and providers that encrypt secrets
/// with it.
fn start(plugin: Arc<dyn KeyService>, key_id: &str) -> (Arc<Envelope>, Providers) {
    start_named("vault", plugin, key_id)
}

fn start_named(
    name: &'static str,
    plugin: Arc<dyn KeyService>,
    key_id: &str,
) -> (Arc<Envelope>, Providers) {
    let envelope = Arc::new(Envelope::new(plugin));
    let seed = Seed::generate().unwrap();
    envelope.write_with(&seed, sealed(&seed, key_id)).unwrap();
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n\
         - resources: [secrets]\n  providers:\n  \
         - kms: {{apiVersion: v2, name: {name}, endpoint: 'unix:///vault'}}\n"
    );
    let configuration = Configuration::read(text.as_bytes(), false).unwrap();
    let providers = Providers::new(&configuration, &|kms: &Kms| {
        assert_eq!((kms.name.as_str(), kms.endpoint.as_str()), (name, "unix:///vault"));
        Ok(envelope.clone())
    });
    (envelope, providers.unwrap())
}

fn key() -> Key {
    Key { collection: "secrets".into(), item: "default/a".into() }
}

fn write(providers: &Providers, value: &'static [u8]) -> Result<Bytes, TransformError> {
    providers.to_storage(&key(), PATH, Bytes::from_static(value))
}

fn read(providers: &Providers, path: &[u8], stored: &Bytes) -> Result<Transformed, TransformError> {
    providers.to_value(&key(), path, stored.clone())
}

#[test]
fn a_seed_serves_many_values() {
    let plugin = Arc::new(Plugin::default());
    let (_, writer) = start(plugin.clone(), "1");
    let stored: Vec<Bytes> = (0..100).map(|_| write(&writer, b"{}").unwrap()).collect();
    assert!(stored.iter().all(|value| value.starts_with(b"k8s:enc:kms:v2:vault:")));
    assert_ne!(stored[0], stored[1], "each has its own key");
    assert!(read(&writer, PATH, &stored[0]).is_ok_and(|read| read.value == b"{}"[..]));
    assert_eq!(plugin.0.load(Ordering::Relaxed), 0, "a server knows its own seed");

    let (envelope, other) = start(plugin.clone(), "1");
    for value in &stored {
        assert!(read(&other, PATH, value).is_ok_and(|read| !read.is_stale));
    }
    assert_eq!(plugin.0.load(Ordering::Relaxed), 1, "another server calls the plugin once");
    assert_eq!(envelope.sources(), 2);

    // With another key of the plugin, older values are stale, but can be read.
    let (_, newer) = start(plugin.clone(), "2");
    assert!(read(&newer, PATH, &stored[0]).is_ok_and(|read| read.is_stale));
    assert!(read(&newer, b"/registry/secrets/default/b", &stored[0]).is_err(), "bound to its path");
}

#[test]
fn writes_need_a_valid_seed() {
    let plugin = Arc::new(Plugin::default());
    let (envelope, providers) = start(plugin.clone(), "1");
    let stored = write(&providers, b"{}").unwrap();
    envelope.refuse_writes("expired".to_owned());
    assert_eq!(write(&providers, b"{}"), Err(TransformError("expired".to_owned())));
    assert!(read(&providers, PATH, &stored).is_ok(), "reads are still possible");
    envelope.allow_writes();
    assert!(write(&providers, b"{}").is_ok());
}

/// upstream: `TestValidateEncryptedObject`, `TestValidateEncryptedDEKSource`, `TestValidateKeyID`,
/// `TestValidateAnnotations`.
#[test]
fn invalid_responses_of_a_plugin_are_refused() {
    let envelope = Envelope::new(Arc::new(Plugin::default()));
    let seed = Seed::generate().unwrap();
    let good = sealed(&seed, "1");
    let annotated = |name: &str, len: usize| SealedSource {
        annotations: BTreeMap::from([(name.to_owned(), vec![0; len].into())]),
        ..good.clone()
    };
    for (sealed, why) in [
        (SealedSource { key_id: String::new(), ..good.clone() }, "keyID is empty"),
        (
            SealedSource { key_id: "k".repeat(1025), ..good.clone() },
            "keyID is 1025 bytes, which exceeds the max size of 1024",
        ),
        (SealedSource { bytes: Bytes::new(), ..good.clone() }, "encrypted DEK source is empty"),
        (
            SealedSource { bytes: vec![0; 1025].into(), ..good.clone() },
            "encrypted DEK source is 1025 bytes, which exceeds the max size of 1024",
        ),
        (annotated("plain", 0), "fully qualified domain name"),
        (
            annotated("a.example", 32 * 1024),
            "total size of annotations is 32777, which exceeds the max size of 32768",
        ),
    ] {
        match envelope.write_with(&seed, sealed) {
            Err(Error::KeyService(message)) => assert!(message.contains(why), "{message}"),
            other => panic!("{why}: {other:?}"),
        }
    }
    assert_eq!(envelope.key_id(), None);
}

#[test]
fn hostile_values() {
    let plugin = Arc::new(Plugin::default());
    let (_, providers) = start(plugin.clone(), "1");
    let stored = write(&providers, b"{\"kind\":\"Secret\"}").unwrap();
    let prefix = b"k8s:enc:kms:v2:vault:".len();
    for len in prefix..stored.len() {
        assert!(read(&providers, PATH, &stored.slice(..len)).is_err(), "{len}");
    }
    for position in prefix..stored.len() {
        let mut changed = stored.to_vec();
        changed[position] ^= 1;
        let outcome = read(&providers, PATH, &changed.into());
        // The key ID and the annotations are not authenticated, as upstream.
        assert!(outcome.is_err() || outcome.is_ok_and(|read| read.value.starts_with(b"{")));
    }
    let (_, elsewhere) = start(plugin.clone(), "lost");
    let lost = write(&elsewhere, b"{}").unwrap();
    let Err(TransformError(why)) = read(&providers, PATH, &lost) else { panic!("it was read") };
    assert_eq!(why, "failed to decrypt DEK, error: rpc error: code = NotFound desc = no such key");
}
