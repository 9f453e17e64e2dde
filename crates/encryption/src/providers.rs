//! The providers of each resource, as a [`Transformer`]. upstream:
//! `apiserver/pkg/server/options/encryptionconfig/config.go`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use pintle_store::{Key as StoreKey, TransformError, Transformed, Transformer};
use sha2::{Digest, Sha256};

use crate::cbc::Cbc;
use crate::chain::{Chain, Cipher, Link, identity};
use crate::gcm::Gcm;
use crate::measures::{Measures, Subject};
use crate::secretbox::Secretbox;
use crate::{Configuration, Envelope, Error, GroupResource, Key, Kms, Provider};

const UNMATCHED: &str = "no matching prefix found";
const UNMATCHED_AES: &str = "no matching key was found for the provided AES transformer";
const UNMATCHED_SECRETBOX: &str =
    "no matching key was found for the provided Secretbox transformer";

/// Upstream's error for version 1 of the KMS API, with its two spaces.
const KMS_V1: &str = "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 \
                      instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.";

/// A function that returns the envelope encryption of a plugin.
pub type Envelopes<'a> = &'a dyn Fn(&Kms) -> Result<Arc<Envelope>, Error>;

/// The providers of a configuration.
pub struct Providers {
    by_resource: BTreeMap<GroupResource, Chain>,
    fingerprint: u64,
    measures: Arc<Measures>,
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_resource.keys().map(ToString::to_string)).finish()
    }
}

impl Providers {
    /// Creates the providers of a configuration.
    ///
    /// # Errors
    /// A rule that an earlier one masks, a key of an invalid length, version 1 of the KMS API, or
    /// an error of `envelopes`.
    pub fn new(configuration: &Configuration, envelopes: Envelopes<'_>) -> Result<Self, Error> {
        let mut by_resource: BTreeMap<GroupResource, Chain> = BTreeMap::new();
        let mut hash = Sha256::new();
        for rule in &configuration.rules {
            let part: Arc<[Link]> = rule
                .providers
                .iter()
                .map(|provider| link(provider, envelopes))
                .collect::<Result<_, _>>()?;
            for name in &rule.resources {
                let resource = GroupResource::parse(name);
                for mask in [resource.any_of_group(), GroupResource::any()] {
                    if by_resource.contains_key(&mask) {
                        return Err(Error::Configuration(format!(
                            "resource \"{resource}\" is masked by earlier rule \"{mask}\""
                        )));
                    }
                }
                let chain = by_resource.entry(resource);
                let chain = chain.or_insert(Chain { parts: Vec::new(), unmatched: UNMATCHED });
                if chain.parts.is_empty() {
                    hash_writer(&mut hash, name, rule.providers.first());
                }
                chain.parts.push(part.clone());
            }
        }
        let digest = hash.finalize();
        let fingerprint = digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        Ok(Self { by_resource, fingerprint, measures: Arc::default() })
    }

    /// Uses these measures.
    #[must_use]
    pub fn measured_by(self, measures: Arc<Measures>) -> Self {
        Self { measures, ..self }
    }

    /// The providers and the resource of a store's collection; `None` if the collection is
    /// never encrypted, or no rule applies to it.
    fn of(&self, collection: &str) -> Option<(&Chain, GroupResource)> {
        let resource = GroupResource::of_collection(collection)?;
        let chain = self
            .by_resource
            .get(&resource)
            .or_else(|| self.by_resource.get(&resource.any_of_group()))
            .or_else(|| self.by_resource.get(&GroupResource::any()))?;
        Some((chain, resource))
    }
}

impl Transformer for Providers {
    fn to_storage(
        &self,
        key: &StoreKey,
        path: &[u8],
        value: Bytes,
    ) -> Result<Bytes, TransformError> {
        let Some((chain, resource)) = self.of(&key.collection) else { return Ok(value) };
        let resource = &*resource.to_string();
        let subject = Subject { resource, path, measures: &self.measures };
        let mut stored = Vec::with_capacity(value.len() + OVERHEAD);
        match chain.write(&value, subject, &mut stored) {
            Ok(()) => Ok(stored.into()),
            Err(why) => Err(TransformError(why.to_string())),
        }
    }

    fn to_value(
        &self,
        key: &StoreKey,
        path: &[u8],
        stored: Bytes,
    ) -> Result<Transformed, TransformError> {
        let read = match self.of(&key.collection) {
            Some((chain, resource)) => {
                let resource = &*resource.to_string();
                chain.read(&stored, Subject { resource, path, measures: &self.measures })
            }
            None => identity(&stored).map(|value| (value, false)),
        };
        let (value, is_stale) = read.map_err(|why| TransformError(why.to_string()))?;
        let value = match value {
            Cow::Owned(value) => value.into(),
            Cow::Borrowed(_) => stored, // only the identity borrows, and it has no prefix
        };
        Ok(Transformed { value, is_stale })
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// The approximate growth of an encrypted value.
const OVERHEAD: usize = 128;

fn link(provider: &Provider, envelopes: Envelopes<'_>) -> Result<Link, Error> {
    Ok(match provider {
        Provider::AesGcm(keys) => {
            let cipher = |key: &[u8]| Gcm::new(key).map(Box::new).map(Cipher::Gcm);
            keyed(b"k8s:enc:aesgcm:v1:", keys, UNMATCHED_AES, cipher)?
        }
        Provider::AesCbc(keys) => {
            let cipher = |key: &[u8]| Cbc::new(key).map(Box::new).map(Cipher::Cbc);
            keyed(b"k8s:enc:aescbc:v1:", keys, UNMATCHED_AES, cipher)?
        }
        Provider::Secretbox(keys) => {
            let cipher = |key: &[u8]| Secretbox::new(key).map(Cipher::Secretbox);
            keyed(b"k8s:enc:secretbox:v1:", keys, UNMATCHED_SECRETBOX, cipher)?
        }
        Provider::Identity => Link { prefix: Vec::new(), cipher: Cipher::Identity },
        Provider::Kms(kms) if kms.version == "v1" => {
            return Err(Error::Configuration(KMS_V1.to_owned()));
        }
        Provider::Kms(kms) => {
            let prefix = format!("k8s:enc:kms:v2:{}:", kms.name).into_bytes();
            Link { prefix, cipher: Cipher::Envelope(envelopes(kms)?) }
        }
    })
}

/// Creates the link of a provider whose keys are found by their names.
fn keyed(
    prefix: &[u8],
    keys: &[Key],
    unmatched: &'static str,
    cipher: impl Fn(&[u8]) -> Option<Cipher>,
) -> Result<Link, Error> {
    let link = |key: &Key| {
        let invalid = || {
            let why = format!("error while creating cipher for named key {}", key.name);
            Error::Configuration(why)
        };
        let prefix = format!("{}:", key.name).into_bytes();
        Ok(Link { prefix, cipher: cipher(&key.secret).ok_or_else(invalid)? })
    };
    let links = keys.iter().map(link).collect::<Result<_, Error>>()?;
    Ok(Link {
        prefix: prefix.to_vec(),
        cipher: Cipher::Keys(Chain { parts: vec![links], unmatched }),
    })
}

/// Adds the provider and key that write a resource to the fingerprint.
fn hash_writer(hash: &mut Sha256, resource: &str, provider: Option<&Provider>) {
    let (method, key) = match provider {
        Some(Provider::AesGcm(keys)) => ("aesgcm", keys.first()),
        Some(Provider::AesCbc(keys)) => ("aescbc", keys.first()),
        Some(Provider::Secretbox(keys)) => ("secretbox", keys.first()),
        Some(Provider::Kms(kms)) => return hash.update(format!("{resource} kms {}", kms.name)),
        Some(Provider::Identity) | None => ("identity", None),
    };
    let (name, secret) = key.map_or(("", &[][..]), |key| (&key.name, &key.secret));
    // The key is hashed first: its digest only shows whether the key is the same.
    let secret = Sha256::digest(secret);
    for part in [resource.as_bytes(), method.as_bytes(), name.as_bytes(), &secret] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
}
