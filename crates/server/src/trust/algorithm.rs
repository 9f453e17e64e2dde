//! Algorithms of signatures and keys, with the names that Go gives them.

use rustls::crypto::CryptoProvider;
use x509_parser::oid_registry::asn1_rs::{Oid, oid};
use x509_parser::prelude::X509Certificate;

/// The algorithm of a certificate's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Algorithm {
    /// Go's name (`x509.SignatureAlgorithm`).
    name: &'static str,
    key: Key,
}

/// The kind of a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Rsa,
    Ecdsa,
    Ed25519,
}

const SIGNATURES: [(Oid<'static>, Algorithm); 11] = [
    (oid!(1.2.840.113549.1.1.4), Algorithm { name: "MD5-RSA", key: Key::Rsa }),
    (oid!(1.2.840.113549.1.1.5), Algorithm { name: "SHA1-RSA", key: Key::Rsa }),
    (oid!(1.3.14.3.2.29), Algorithm { name: "SHA1-RSA", key: Key::Rsa }),
    (oid!(1.2.840.113549.1.1.11), Algorithm { name: "SHA256-RSA", key: Key::Rsa }),
    (oid!(1.2.840.113549.1.1.12), Algorithm { name: "SHA384-RSA", key: Key::Rsa }),
    (oid!(1.2.840.113549.1.1.13), Algorithm { name: "SHA512-RSA", key: Key::Rsa }),
    (oid!(1.2.840.10045.4.1), Algorithm { name: "ECDSA-SHA1", key: Key::Ecdsa }),
    (oid!(1.2.840.10045.4.3.2), Algorithm { name: "ECDSA-SHA256", key: Key::Ecdsa }),
    (oid!(1.2.840.10045.4.3.3), Algorithm { name: "ECDSA-SHA384", key: Key::Ecdsa }),
    (oid!(1.2.840.10045.4.3.4), Algorithm { name: "ECDSA-SHA512", key: Key::Ecdsa }),
    (oid!(1.3.101.112), Algorithm { name: "Ed25519", key: Key::Ed25519 }),
];

const KEYS: [(Oid<'static>, Key); 3] = [
    (oid!(1.2.840.113549.1.1.1), Key::Rsa),
    (oid!(1.2.840.10045.2.1), Key::Ecdsa),
    (oid!(1.3.101.112), Key::Ed25519),
];

impl Algorithm {
    /// The start of the text about an insecure algorithm.
    pub(super) const INSECURE: &'static str = "x509: cannot verify signature: insecure algorithm";

    /// The algorithm of a certificate's signature; `None` if it is not known.
    pub(super) fn of(certificate: &X509Certificate<'_>) -> Option<Self> {
        let oid = &certificate.signature_algorithm.algorithm;
        SIGNATURES.iter().find(|(known, _)| known == oid).map(|(_, algorithm)| *algorithm)
    }

    /// Whether the algorithm uses SHA-1.
    pub(super) fn is_sha1(self) -> bool {
        self.name.contains("SHA1")
    }

    fn is_insecure(self) -> bool {
        self.is_sha1() || self.name.starts_with("MD5")
    }
}

impl Key {
    fn of(certificate: &X509Certificate<'_>) -> Option<Self> {
        let oid = &certificate.public_key().algorithm.algorithm;
        KEYS.iter().find(|(known, _)| known == oid).map(|(_, key)| *key)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Rsa => "RSA",
            Self::Ecdsa => "ECDSA",
            Self::Ed25519 => "Ed25519",
        }
    }

    /// The type of Go's public keys.
    const fn go_type(self) -> &'static str {
        match self {
            Self::Rsa => "*rsa.PublicKey",
            Self::Ecdsa => "*ecdsa.PublicKey",
            Self::Ed25519 => "ed25519.PublicKey",
        }
    }

    const fn bad_signature(self) -> &'static str {
        match self {
            Self::Rsa => "crypto/rsa: verification error",
            Self::Ecdsa => "x509: ECDSA verification failure",
            Self::Ed25519 => "x509: Ed25519 verification failure",
        }
    }
}

/// Checks that a certificate is signed with the key of `parent` (Go: `checkSignature`).
///
/// # Errors
/// Go's text.
pub(super) fn check_signature(
    certificate: &X509Certificate<'_>,
    parent: &X509Certificate<'_>,
    provider: &CryptoProvider,
) -> Result<(), String> {
    const UNKNOWN: &str = "x509: cannot verify signature: algorithm unimplemented";
    let (Some(algorithm), Some(key)) = (Algorithm::of(certificate), Key::of(parent)) else {
        return Err(UNKNOWN.to_owned());
    };
    if algorithm.is_insecure() {
        return Err(format!("{} {}", Algorithm::INSECURE, algorithm.name));
    }
    if algorithm.key != key {
        let (name, of) = (algorithm.key.name(), key.go_type());
        return Err(format!(
            "x509: signature algorithm specifies an {name} public key, but have public key of type {of}"
        ));
    }
    let public_key = &parent.public_key().subject_public_key.data;
    let (message, signature) =
        (certificate.tbs_certificate.as_ref(), &certificate.signature_value.data);
    let oid = certificate.signature_algorithm.algorithm.as_bytes();
    // The identifier of a supported algorithm begins with the tag and the length of its oid.
    let candidates = provider.signature_verification_algorithms.all.iter();
    let mut candidates = candidates.filter(|one| {
        one.signature_alg_id().as_ref().get(2..).is_some_and(|known| known.starts_with(oid))
    });
    match candidates.any(|one| one.verify_signature(public_key, message, signature).is_ok()) {
        true => Ok(()),
        false => Err(key.bad_signature().to_owned()),
    }
}
