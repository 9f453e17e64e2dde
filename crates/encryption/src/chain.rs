//! Providers in their order; the prefix of a stored value selects one. upstream:
//! `prefixTransformers` of `apiserver/pkg/storage/value/transformer.go`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crate::Error;
use crate::cbc::Cbc;
use crate::gcm::Gcm;
use crate::kms::Envelope;
use crate::measures::{FROM_STORAGE, Subject, TO_STORAGE};
use crate::secretbox::Secretbox;

/// The prefix of every encrypted value.
const ENCRYPTED: &[u8] = b"k8s:enc:";

/// Providers, or the keys of one provider; never empty.
pub(crate) struct Chain {
    /// The links in the order of the configuration, in one part for each rule. Resources of the
    /// same rule share its part.
    pub(crate) parts: Vec<Arc<[Link]>>,
    /// The error for a value without any of the prefixes.
    pub(crate) unmatched: &'static str,
}

/// The cipher behind one prefix.
pub(crate) struct Link {
    pub(crate) prefix: Vec<u8>,
    pub(crate) cipher: Cipher,
}

/// How values with a prefix are encrypted.
pub(crate) enum Cipher {
    Identity,
    Gcm(Box<Gcm>),
    Cbc(Box<Cbc>),
    Secretbox(Secretbox),
    Envelope(Arc<Envelope>),
    /// The keys of a provider.
    Keys(Chain),
}

impl Chain {
    /// Decrypts a stored value; also returns whether another provider or key would be used to write
    /// it now.
    pub(crate) fn read<'s>(
        &self,
        stored: &'s [u8],
        subject: Subject<'_>,
    ) -> Result<(Cow<'s, [u8]>, bool), Error> {
        let (began, mut failed) = (Instant::now(), None);
        for (index, Link { prefix, cipher }) in self.links().enumerate() {
            let Some(rest) = stored.strip_prefix(&**prefix) else { continue };
            let read = cipher.read(rest, subject);
            if prefix.is_empty() {
                // This is the identity, which rejects encrypted values and leaves them to the other
                // providers.
                if read.is_err() {
                    continue;
                }
                subject.record(FROM_STORAGE, b"identity", began, &read);
            } else {
                subject.record(FROM_STORAGE, prefix, began, &read);
            }
            match read {
                Ok((value, is_stale)) => return Ok((value, is_stale || index > 0)),
                // Two providers may have the same prefix and different keys, so the others are
                // tried, too.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let unmatched = Err(Error::Undecryptable(self.unmatched));
        subject.record(FROM_STORAGE, b"unknown", began, &unmatched);
        unmatched
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// Appends the stored form of a value.
    pub(crate) fn write(
        &self,
        value: &[u8],
        subject: Subject<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Some(Link { prefix, cipher }) = self.links().next() else {
            return Err(Error::Unencryptable("no provider is configured"));
        };
        let began = Instant::now();
        out.extend_from_slice(prefix);
        let written = cipher.write(value, subject, out);
        subject.record(TO_STORAGE, prefix, began, &written);
        written
    }
}

impl Cipher {
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

/// Returns a stored value that is not encrypted; refuses an encrypted one.
pub(crate) fn identity(stored: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    if stored.starts_with(ENCRYPTED) {
        return Err(Error::Undecryptable("identity transformer tried to read encrypted data"));
    }
    Ok(Cow::Borrowed(stored))
}
