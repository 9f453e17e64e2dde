//! Verifies that the requester of a pod certificate has its private key (upstream:
//! `ValidatePodCertificateRequestCreate`, from the key on).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pintle_auth::certificate_request::CertificateRequest;
use pintle_meta::field::Error;
use pintle_value::{Path, Value};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::pki::{proves_possession, signs_with_sha256};

/// The allowed sizes of RSA keys, in bits.
const RSA_BITS: [usize; 2] = [3072, 4096];

/// The allowed curves by object identifier: P-256, P-384, P-521.
const CURVES: [&str; 3] = ["1.2.840.10045.3.1.7", "1.3.132.0.34", "1.3.132.0.35"];
/// A known curve that is not allowed.
const P224: &str = "1.3.132.0.33";
const ED25519: &str = "1.3.101.112";
const UNKNOWN: &str = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";

/// Returns the error of a request whose members and lengths are valid, if its key or proof is
/// invalid.
pub(super) fn possession_error(request: &Value) -> Option<Error> {
    let spec = request.get("spec")?;
    let member = |name: &str| {
        let text = spec.str_at(&[name]).filter(|text| !text.is_empty())?;
        Some((Path::new("spec").field(name), BASE64.decode(text).unwrap_or_default()))
    };
    if let Some((path, der)) = member("stubPKCS10Request") {
        return wrong_request(&path, &der);
    }
    let (path, key) = member("pkixPublicKey")?;
    let (proof_path, proof) = member("proofOfPossession")?;
    let pod = spec.str_at(&["podUID"]).unwrap_or_default();
    if let Some(wrong) = wrong_key(&key) {
        return Some(match wrong {
            Defect::Malformed => {
                let words = "must be a valid PKIX-serialized public key";
                Error::invalid(&path, spec.get("pkixPublicKey").unwrap_or(&Value::Null), words)
            }
            Defect::Kind => {
                Error::invalid(&path, spec.get("pkixPublicKey").unwrap_or(&Value::Null), UNKNOWN)
            }
            Defect::Curve(curve) => {
                let words = "elliptic public keys must use curve P256 or P384";
                Error::invalid(&path, &format!("curve {curve}").into(), words)
            }
            Defect::Bits(bits) => wrong_bits(&path, bits),
        });
    }
    let words = "could not verify proof-of-possession signature";
    (!signs_with_sha256(&key, pod.as_bytes(), &proof)).then(|| refused(&proof_path, words))
}

fn wrong_request(path: &Path, der: &[u8]) -> Option<Error> {
    let Ok(request) = CertificateRequest::from_der_bytes(der) else {
        return Some(refused(path, "must be a valid PKCS#10 CSR"));
    };
    match wrong_key(&request.key) {
        Some(Defect::Malformed) => Some(refused(path, "must be a valid PKCS#10 CSR")),
        Some(Defect::Kind) => Some(refused(path, UNKNOWN)),
        Some(Defect::Curve(curve)) => {
            let words = "elliptic public keys must use curve P256, P384, or P521";
            Some(Error::invalid(path, &format!("curve {curve}").into(), words))
        }
        Some(Defect::Bits(bits)) => Some(wrong_bits(path, bits)),
        None => (!proves_possession(&request)).then(|| refused(path, "invalid signature")),
    }
}

/// An error that does not show the value.
fn refused(path: &Path, words: &str) -> Error {
    Error { value: None, ..Error::invalid(path, &Value::Null, words) }
}

fn wrong_bits(path: &Path, bits: usize) -> Error {
    let words = "RSA keys must have modulus size 3072 or 4096";
    Error::invalid(path, &format!("{bits}-bit modulus").into(), words)
}

/// The defect of a key.
enum Defect {
    Malformed,
    Kind,
    Curve(&'static str),
    Bits(usize),
}

fn wrong_key(der: &[u8]) -> Option<Defect> {
    let Ok(([], key)) = SubjectPublicKeyInfo::from_der(der) else { return Some(Defect::Malformed) };
    if key.algorithm.algorithm.to_id_string() == ED25519 {
        return None;
    }
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => {
            let bits = rsa.key_size();
            (!RSA_BITS.contains(&bits)).then_some(Defect::Bits(bits))
        }
        Ok(PublicKey::EC(_)) => {
            let curve = key.algorithm.parameters.as_ref().and_then(|any| any.as_oid().ok());
            let curve = curve.map(|curve| curve.to_id_string()).unwrap_or_default();
            match curve.as_str() {
                P224 => Some(Defect::Curve("P-224")),
                known if CURVES.contains(&known) => None,
                _ => Some(Defect::Malformed), // Go parses no other curves
            }
        }
        Ok(_) => Some(Defect::Kind),
        Err(_) => Some(Defect::Malformed),
    }
}
