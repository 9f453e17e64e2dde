//! Keys that sign and verify tokens: read from PEM, and written as JSON Web Keys.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair, RsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pintle_value::{Map, Value};
use rustls_pki_types::pem::{PemObject, SectionKind};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::Error;

/// An algorithm of JSON Web Signatures that upstream uses for signing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
    Es384,
    Es512,
}

impl Algorithm {
    const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
        }
    }

    fn verification(self) -> &'static dyn signature::VerificationAlgorithm {
        match self {
            Self::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Self::Es512 => &signature::ECDSA_P521_SHA512_FIXED,
        }
    }
}

/// The algorithms with elliptic curves: name of the curve in a JSON Web Key, object identifier, and
/// implementation.
const CURVES: [(Algorithm, &str, &str, &EcdsaSigningAlgorithm); 3] = [
    (Algorithm::Es256, "P-256", "1.2.840.10045.3.1.7", &signature::ECDSA_P256_SHA256_FIXED_SIGNING),
    (Algorithm::Es384, "P-384", "1.3.132.0.34", &signature::ECDSA_P384_SHA384_FIXED_SIGNING),
    (Algorithm::Es512, "P-521", "1.3.132.0.35", &signature::ECDSA_P521_SHA512_FIXED_SIGNING),
];

/// A key that verifies tokens.
#[derive(Clone, Debug)]
pub struct PublicKey {
    /// SubjectPublicKeyInfo, in DER.
    der: Vec<u8>,
    algorithm: Algorithm,
    id: String,
}

/// A key that signs tokens: RSA, or one of the curves P-256, P-384 and P-521.
#[derive(Debug)]
pub struct SigningKey {
    pair: Pair,
    public: PublicKey,
}

#[derive(Debug)]
enum Pair {
    Rsa(RsaKeyPair),
    Curve(EcdsaKeyPair),
}

impl PublicKey {
    fn new(der: Vec<u8>) -> Result<Self, Error> {
        let wrong = || Error::Key("it is neither RSA nor on the curve P-256, P-384 or P-521");
        let (_, info) = SubjectPublicKeyInfo::from_der(&der).map_err(|_| wrong())?;
        let algorithm = match info.parsed().map_err(|_| wrong())? {
            Parsed::RSA(_) => Algorithm::Rs256,
            Parsed::EC(_) => {
                let curve = info.algorithm.parameters.as_ref().and_then(|p| p.as_oid().ok());
                let curve = curve.map(|oid| oid.to_id_string()).ok_or_else(wrong)?;
                let known = CURVES.iter().find(|(_, _, oid, _)| *oid == curve);
                known.ok_or_else(wrong)?.0
            }
            _ => return Err(wrong()),
        };
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(&der));
        Ok(Self { der, algorithm, id })
    }

    /// The key's id in tokens, a hash of the public key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of the key's algorithm.
    pub const fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Whether the key verifies the signature of a message.
    pub(super) fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        let key = signature::UnparsedPublicKey::new(self.algorithm.verification(), &self.der);
        algorithm == self.algorithm() && key.verify(message, signature).is_ok()
    }

    /// The key as a JSON Web Key.
    pub fn web_key(&self) -> Map {
        let encoded = |bytes: &[u8]| Value::from(URL_SAFE_NO_PAD.encode(bytes));
        let mut key = Map::new();
        key.insert("use", "sig");
        key.insert("kid", self.id.as_str());
        key.insert("alg", self.algorithm());
        let Ok((_, info)) = SubjectPublicKeyInfo::from_der(&self.der) else { return key };
        match info.parsed() {
            Ok(Parsed::RSA(rsa)) => {
                let plain = |bytes: &[u8]| {
                    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                    encoded(bytes.get(zeros..).unwrap_or_default())
                };
                key.insert("kty", "RSA");
                key.insert("n", plain(rsa.modulus));
                key.insert("e", plain(rsa.exponent));
            }
            Ok(Parsed::EC(point)) => {
                let curve = CURVES.iter().find(|(algorithm, ..)| *algorithm == self.algorithm);
                let coordinates = point.data().get(1..).unwrap_or_default();
                let (x, y) = coordinates.split_at(coordinates.len() / 2);
                key.insert("kty", "EC");
                key.insert("crv", curve.map_or("", |(_, name, ..)| name));
                key.insert("x", encoded(x));
                key.insert("y", encoded(y));
            }
            _ => {}
        }
        key
    }
}

impl SigningKey {
    /// Reads the first private key of a PEM file: PKCS#8, PKCS#1 or SEC 1.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        let sections = sections(pem)?;
        let mut keys = sections.iter().filter_map(|(kind, der)| Pair::from_der(*kind, der));
        let pair = keys.next().ok_or(Error::Key("there is no usable private key"))?;
        let public = PublicKey::new(pair.public_der()?)?;
        Ok(Self { pair, public })
    }

    /// The public key.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs a message in the form of JSON Web Signatures.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let failed = |_| Error::Key("it cannot sign");
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
            Pair::Curve(pair) => Ok(pair.sign(&random, message).map_err(failed)?.as_ref().to_vec()),
        }
    }
}

impl Pair {
    fn from_der(kind: SectionKind, der: &[u8]) -> Option<Self> {
        let curve = |read: &dyn Fn(&'static EcdsaSigningAlgorithm) -> Option<EcdsaKeyPair>| {
            CURVES.iter().find_map(|(.., algorithm)| read(algorithm)).map(Self::Curve)
        };
        match kind {
            SectionKind::RsaPrivateKey => RsaKeyPair::from_der(der).ok().map(Self::Rsa),
            SectionKind::EcPrivateKey => {
                curve(&|algorithm| EcdsaKeyPair::from_private_key_der(algorithm, der).ok())
            }
            SectionKind::PrivateKey => RsaKeyPair::from_pkcs8(der)
                .ok()
                .map(Self::Rsa)
                .or_else(|| curve(&|algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der).ok())),
            _ => None,
        }
    }

    fn public_der(&self) -> Result<Vec<u8>, Error> {
        let der: Result<PublicKeyX509Der<'_>, _> = match self {
            Self::Rsa(pair) => pair.public_key().as_der(),
            Self::Curve(pair) => pair.public_key().as_der(),
        };
        Ok(der.map_err(|_| Error::Key("its public key cannot be computed"))?.as_ref().to_vec())
    }
}

/// Reads all verification keys of a PEM file: public keys, and those of certificates and private
/// keys. It is an error if there is none.
pub fn public_keys(pem: &str) -> Result<Vec<PublicKey>, Error> {
    let mut keys = Vec::new();
    for (kind, der) in sections(pem)? {
        let public = match kind {
            SectionKind::PublicKey => Some(der),
            SectionKind::Certificate => {
                let (_, certificate) = X509Certificate::from_der(&der)
                    .map_err(|_| Error::Key("a certificate in it cannot be read"))?;
                Some(certificate.public_key().raw.to_vec())
            }
            _ => Pair::from_der(kind, &der).map(|pair| pair.public_der()).transpose()?,
        };
        keys.extend(public.map(PublicKey::new).transpose()?);
    }
    if keys.is_empty() {
        return Err(Error::Key("there is no usable key"));
    }
    Ok(keys)
}

fn sections(pem: &str) -> Result<Vec<(SectionKind, Vec<u8>)>, Error> {
    let sections: Result<_, _> = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes()).collect();
    sections.map_err(|_| Error::Key("it is not PEM"))
}
