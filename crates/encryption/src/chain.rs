//! Providers in their order, each found by the prefix of what it stores.
//! upstream: `prefixTransformers` of `apiserver/pkg/storage/value/transformer.go`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crate::Error;
use crate::cbc::Cbc;
use crate::gcm::Gcm;
use crate::kms::Envelope;
use crate::measures::{FROM_STORAGE, Subject, TO_STORAGE};
use crate::secretbox::Secretbox;

/// What every encrypted value begins with.
const ENCRYPTED: &[u8] = b"k8s:enc:";

pub(crate) const SHORT: Error =
    Error::Undecryptable("the stored data was shorter than the required size");

/// Providers, or the keys of one; never none.
pub(crate) struct Chain {
    /// In their order. Resources of one rule share a part.
    pub(crate) parts: Vec<Arc<[Link]>>,
    /// What is said of a value that has none of the prefixes.
    pub(crate) unmatched: &'static str,
}

/// What one prefix leads to.
pub(crate) struct Link {
    pub(crate) prefix: Vec<u8>,
    pub(crate) step: Step,
}

/// How values behind a prefix are encrypted.
pub(crate) enum Step {
    Identity,
    Gcm(Box<Gcm>),
    Cbc(Box<Cbc>),
    Secretbox(Secretbox),
    Envelope(Arc<Envelope>),
    /// The keys of a provider.
    Keys(Chain),
}

impl Chain {
    /// The value of stored bytes, and whether another provider or key would write it now.
    pub(crate) fn read<'s>(
        &self,
        stored: &'s [u8],
        subject: Subject<'_>,
    ) -> Result<(Cow<'s, [u8]>, bool), Error> {
        let (began, mut failed) = (Instant::now(), None);
        for (index, Link { prefix, step }) in self.links().enumerate() {
            let Some(rest) = stored.strip_prefix(&**prefix) else { continue };
            let read = step.read(rest, subject);
            if prefix.is_empty() {
                // It is the identity, which refuses what is encrypted, for others to read.
                if read.is_err() {
                    continue;
                }
                subject.ended(FROM_STORAGE, b"identity", began, &read);
            } else {
                subject.ended(FROM_STORAGE, prefix, began, &read);
            }
            match read {
                Ok((value, is_stale)) => return Ok((value, is_stale || index > 0)),
                // Two providers may have one prefix and different keys, so the others are tried as well.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let unmatched = Err(Error::Undecryptable(self.unmatched));
        subject.ended(FROM_STORAGE, b"unknown", began, &unmatched);
        unmatched
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// Appends what is stored of a value.
    pub(crate) fn write(
        &self,
        value: &[u8],
        subject: Subject<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Some(Link { prefix, step }) = self.links().next() else {
            return Err(Error::Unencryptable("no provider is configured"));
        };
        let began = Instant::now();
        out.extend_from_slice(prefix);
        let written = step.write(value, subject, out);
        subject.ended(TO_STORAGE, prefix, began, &written);
        written
    }
}

impl Step {
    fn read<'s>(
        &self,
        stored: &'s [u8],
        subject: Subject<'_>,
    ) -> Result<(Cow<'s, [u8]>, bool), Error> {
        match self {
            Self::Identity => Ok((identity(stored)?, false)),
            Self::Gcm(key) => Ok((key.decrypt(stored, subject.path)?.into(), false)),
            Self::Cbc(key) => Ok((key.decrypt(stored)?.into(), false)),
            Self::Secretbox(key) => Ok((key.decrypt(stored)?.into(), false)),
            Self::Envelope(envelope) => {
                let (value, is_stale) = envelope.decrypt(stored, subject.path)?;
                Ok((value.into(), is_stale))
            }
            Self::Keys(keys) => keys.read(stored, subject),
        }
    }

    fn write(&self, value: &[u8], subject: Subject<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Identity => {
                out.extend_from_slice(value);
                Ok(())
            }
            Self::Gcm(key) => key.encrypt(value, subject.path, out),
            Self::Cbc(key) => key.encrypt(value, out),
            Self::Secretbox(key) => key.encrypt(value, out),
            Self::Envelope(envelope) => envelope.encrypt(value, subject.path, out),
            Self::Keys(keys) => keys.write(value, subject, out),
        }
    }
}

/// A value that is not encrypted.
pub(crate) fn identity(stored: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    if stored.starts_with(ENCRYPTED) {
        return Err(Error::Undecryptable("identity transformer tried to read encrypted data"));
    }
    Ok(Cow::Borrowed(stored))
}

/// Bytes that nobody can guess.
pub(crate) fn random<const LEN: usize>() -> Result<[u8; LEN], Error> {
    let mut bytes = [0; LEN];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| Error::Unencryptable("unable to read sufficient random bytes"))?;
    Ok(bytes)
}
