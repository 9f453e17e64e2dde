//! Signs certificate requests of clients, for the controllers.
//!
//! The signer copies the key of a request. It encodes subject and other names again from the parsed
//! request, so it signs nothing that was not checked. The rest is upstream's permissive policy
//! (`pkg/controller/certificates/authority`). This module encodes certificates itself, because
//! rcgen does not support subjects with several groups.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pintle_auth::certificate_request::CertificateRequest;
use pintle_auth::distinguished_name::{
    COMMON_NAME, COUNTRY, DistinguishedName, Kind, LOCALITY, ORGANIZATION, ORGANIZATIONAL_UNIT,
    POSTAL_CODE, PROVINCE, SERIAL_NUMBER, STREET,
};
use pintle_controllers::signing_requests::{self, Order};
use pintle_meta::time;
use rcgen::{KeyPair, PublicKeyData as _, SignatureAlgorithm, SigningKey as _};
use rustls::crypto::aws_lc_rs;
use x509_parser::certificate::Validity as X509Validity;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Credentials;
use super::authority::Authority;
use super::der::{SEQUENCE, der};
use super::pem::elliptic;
use super::signature::is_signed;
use crate::Error;
use crate::machine::{now, random};

/// Certificates are backdated by this, since clocks differ.
const BACKDATED_SECONDS: i64 = 5 * 60;
/// A certificate with a shorter lifetime has its full lifetime from the time of issue. Longer
/// lifetimes include the time of backdating, so they end earlier by as much.
const SHORT_SECONDS: i64 = 8 * 60 * 60;

/// The bits of key usages.
const BITS: &[(&str, u8)] = &[
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// Extended key usages with the contents of their object identifiers, in the order of encoding.
const PURPOSES: &[(&str, &[u8])] = &[
    ("any", &[0x55, 0x1d, 0x25, 0]),
    ("server auth", &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3]),
    ("netscape sgc", &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

/// The identifiers of signature algorithms in DER: object identifier and parameters.
const ALGORITHMS: &[(&SignatureAlgorithm, &[u8])] = &[
    (&rcgen::PKCS_ECDSA_P256_SHA256, &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]),
    (&rcgen::PKCS_ECDSA_P384_SHA384, &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3]),
    (&rcgen::PKCS_ECDSA_P521_SHA512, &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4]),
    (&rcgen::PKCS_RSA_SHA256, &[0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 0x0b, 0x05, 0]),
    (&rcgen::PKCS_ED25519, &[0x06, 3, 0x2b, 0x65, 0x70]),
];

/// The server's CA as a signer.
pub struct Signer {
    /// The CA certificate, in DER.
    certificate: Vec<u8>,
    /// The CA key, as PEM; it is parsed when needed, which is seldom.
    key_pem: String,
}

impl Signer {
    pub(super) fn of(authority: &Authority) -> Result<Self, Error> {
        let certificate = authority.certificate_der()?.to_vec();
        Ok(Self { certificate, key_pem: authority.key_pem().to_owned() })
    }
}

impl signing_requests::Signer for Signer {
    fn sign(&self, order: &Order<'_>) -> Result<String, String> {
        let request = order.request;
        if !proves_possession(request) {
            return Err("unable to verify certificate request signature".to_owned());
        }
        let leaf = Leaf {
            subject: &request.subject,
            key: &request.key,
            names: &names(request),
            usages: order.usages,
            seconds: order.seconds,
            now: order.now.unix_seconds(),
        };
        self.issue(&leaf)
    }
}

/// Verifies that a request is signed by its own key.
pub(crate) fn proves_possession(request: &CertificateRequest) -> bool {
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms.all;
    is_signed(&request.key, algorithms, &request.signed, &request.signature)
}

/// Verifies a signature with a key (a `SubjectPublicKeyInfo` in DER), with SHA-256 if the key type
/// allows several hashes.
pub(crate) fn signs_with_sha256(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let algorithms = [
        webpki::aws_lc_rs::ED25519,
        webpki::aws_lc_rs::ECDSA_P256_SHA256,
        webpki::aws_lc_rs::ECDSA_P384_SHA256,
        webpki::aws_lc_rs::ECDSA_P521_SHA256,
        webpki::aws_lc_rs::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
    ];
    is_signed(key, &algorithms, message, signature)
}

/// The variable parts of a certificate; bytes are DER.
struct Leaf<'a> {
    subject: &'a DistinguishedName,
    key: &'a [u8],
    names: &'a [u8],
    usages: &'a [&'a str],
    /// The lifetime.
    seconds: i64,
    /// The time of issue, in seconds since 1970.
    now: i64,
}

impl Signer {
    /// Issues a client certificate with a new key, for a user name and groups.
    ///
    /// # Errors
    /// If the CA cannot sign.
    pub fn client(&self, name: &str, groups: &[&str]) -> Result<Credentials, Error> {
        const DAY: i64 = 24 * 60 * 60;
        let groups = groups.iter().map(|group| (ORGANIZATION, *group));
        let subject = DistinguishedName::of(groups.chain([(COMMON_NAME, name)]));
        let failed = |why: String| Error::MakeCertificate(why);
        let key = KeyPair::generate().map_err(|why| failed(why.to_string()))?;
        let certificate_pem = self.issue(&Leaf {
            subject: &subject,
            key: &key.subject_public_key_info(),
            names: &[],
            usages: &["digital signature", "client auth"],
            seconds: 365 * DAY,
            now: now().unix_seconds(),
        });
        Ok(Credentials {
            certificate_pem: certificate_pem.map_err(failed)?,
            key_pem: elliptic(&key).unwrap_or_else(|| key.serialize_pem()),
        })
    }

    fn issue(&self, leaf: &Leaf<'_>) -> Result<String, String> {
        let (_, authority) =
            X509Certificate::from_der(&self.certificate).map_err(|why| why.to_string())?;
        let key = KeyPair::from_pem(&self.key_pem).map_err(|why| why.to_string())?;
        let algorithm = ALGORITHMS.iter().find(|(known, _)| *known == key.algorithm());
        let (_, algorithm) = algorithm.ok_or("the authority's key signs in an unknown way")?;
        let algorithm = der(SEQUENCE, algorithm);

        let mut serial = [0; 16];
        random(&mut serial);
        serial[0] = serial[0] & 0x7f | 0x40; // positive, and of fixed length
        let body = der(
            SEQUENCE,
            &[
                der(0xa0, &der(INTEGER, &[2])), // version 3
                der(INTEGER, &serial),
                algorithm.clone(),
                authority.subject().as_raw().to_vec(),
                validity(leaf, authority.validity())?,
                subject(leaf.subject),
                leaf.key.to_vec(),
                der(0xa3, &der(SEQUENCE, &extensions(leaf, &authority)?)),
            ]
            .concat(),
        );
        let signature = key.sign(&body).map_err(|why| why.to_string())?;
        let certificate = der(
            SEQUENCE,
            &[body, algorithm, der(BIT_STRING, &[vec![0], signature].concat())].concat(),
        );
        Ok(pem("CERTIFICATE", &certificate))
    }
}

/// Encodes a subject as Go does (`pkix.Name.ToRDNSequence`): the attributes of each type in one
/// set, the types in this order, and no other type.
fn subject(name: &DistinguishedName) -> Vec<u8> {
    const SETS: [&Kind; 7] =
        [COUNTRY, PROVINCE, LOCALITY, STREET, POSTAL_CODE, ORGANIZATION, ORGANIZATIONAL_UNIT];
    let sets = SETS.into_iter().map(|kind| (kind, name.all(kind).collect::<Vec<_>>()));
    let last = |kind| (kind, Some(name.last(kind)).filter(|text| !text.is_empty()));
    let ones = [COMMON_NAME, SERIAL_NUMBER].into_iter().map(last);
    let ones = ones.map(|(kind, text)| (kind, text.into_iter().collect()));
    let all = sets.chain(ones).filter(|(_, texts)| !texts.is_empty());
    let sets = all.flat_map(|(kind, texts)| {
        let attribute = |text: &str| {
            der(SEQUENCE, &[der(OBJECT, kind), der(text_type(text), text.as_bytes())].concat())
        };
        let mut attributes: Vec<_> = texts.into_iter().map(attribute).collect();
        attributes.sort_unstable(); // DER sorts sets
        der(SET, &attributes.concat())
    });
    der(SEQUENCE, &sets.collect::<Vec<_>>())
}

/// The tag of a text: PrintableString if possible, or UTF8String.
fn text_type(text: &str) -> u8 {
    let is_printable = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte);
    if text.bytes().all(is_printable) { 0x13 } else { 0x0c }
}

/// Encodes the validity: backdated, and at most until the CA expires.
fn validity(leaf: &Leaf<'_>, authority: &X509Validity) -> Result<Vec<u8>, String> {
    let now = leaf.now;
    let authority_ends = authority.not_after.timestamp();
    if now < authority.not_before.timestamp() {
        return Err("refusing to sign with an authority that is not valid yet".to_owned());
    }
    let early = if leaf.seconds < SHORT_SECONDS { 0 } else { BACKDATED_SECONDS };
    let end = now.saturating_add(leaf.seconds - early).min(authority_ends);
    if now >= authority_ends {
        return Err("refusing to sign a certificate that expired in the past".to_owned());
    }
    Ok(der(SEQUENCE, &[moment(now.saturating_sub(BACKDATED_SECONDS)), moment(end)].concat()))
}

/// Encodes a time: with a two-digit year before 2050, with four digits from then on.
fn moment(unix_seconds: i64) -> Vec<u8> {
    let text = time::format(unix_seconds.saturating_mul(time::SECOND));
    let text: String = text.chars().filter(|c| c.is_ascii_digit() || *c == 'Z').collect();
    match text.strip_prefix("20") {
        Some(short) if text.as_str() < "2050" => der(0x17, short.as_bytes()),
        _ => der(0x18, text.as_bytes()),
    }
}

fn extensions(leaf: &Leaf<'_>, authority: &X509Certificate<'_>) -> Result<Vec<u8>, String> {
    const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
    const PURPOSE: &[u8] = &[0x55, 0x1d, 0x25];
    const CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
    const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
    const OTHER_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
    let mut all = Vec::new();
    let (bits, purposes) = usages(leaf.usages)?;
    if let Some(bits) = bits {
        all.extend(extension(KEY_USAGE, true, &bits));
    }
    if !purposes.is_empty() {
        all.extend(extension(PURPOSE, false, &der(SEQUENCE, &purposes)));
    }
    all.extend(extension(CONSTRAINTS, true, &der(SEQUENCE, &[]))); // not a CA
    let key = authority.extensions().iter().find_map(|e| match e.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
        _ => None,
    });
    if let Some(key) = key {
        all.extend(extension(AUTHORITY_KEY, false, &der(SEQUENCE, &der(0x80, key))));
    }
    if !leaf.names.is_empty() {
        all.extend(extension(OTHER_NAMES, false, &der(SEQUENCE, leaf.names)));
    }
    Ok(all)
}

fn extension(id: &[u8], is_critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if is_critical { der(0x01, &[0xff]) } else { Vec::new() };
    der(SEQUENCE, &[der(OBJECT, id), critical, der(0x04, value)].concat())
}

/// The key usage bits, if there are any, and the extended key usages.
fn usages(usages: &[&str]) -> Result<(Option<Vec<u8>>, Vec<u8>), String> {
    let is_known = |usage: &&&str| {
        BITS.iter().any(|(known, _)| known == *usage)
            || PURPOSES.iter().any(|(known, _)| known == *usage)
    };
    let unknown: Vec<String> =
        usages.iter().filter(|usage| !is_known(usage)).map(|usage| format!("{usage:?}")).collect();
    if !unknown.is_empty() {
        return Err(format!("unrecognized usage values: [{}]", unknown.join(" ")));
    }
    let bits = BITS.iter().filter(|(usage, _)| usages.contains(usage)).map(|(_, bit)| *bit);
    let bits: BTreeSet<u8> = bits.collect();
    let string = bits.last().map(|last| {
        let mut bytes = vec![0; usize::from(last / 8) + 1];
        for bit in &bits {
            bytes[usize::from(bit / 8)] |= 0x80 >> (bit % 8);
        }
        bytes.insert(0, 7 - last % 8); // the number of unused bits
        der(BIT_STRING, &bytes)
    });
    let mut purposes: Vec<&[u8]> =
        PURPOSES.iter().filter(|(usage, _)| usages.contains(usage)).map(|(_, id)| *id).collect();
    purposes.dedup();
    Ok((string, purposes.into_iter().flat_map(|id| der(OBJECT, id)).collect()))
}

/// Encodes the subject alternative names.
fn names(request: &CertificateRequest) -> Vec<u8> {
    let texts = |tag: u8, list: &[String]| -> Vec<u8> {
        list.iter().flat_map(|name| der(tag, name.as_bytes())).collect()
    };
    let addresses = request.addresses.iter().flat_map(|address| der(0x87, address)).collect();
    [
        texts(0x82, &request.dns_names),
        texts(0x81, &request.mail_addresses),
        addresses,
        texts(0x86, &request.uris),
    ]
    .concat()
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT: u8 = 0x06;
const SET: u8 = 0x31;

fn pem(kind: &str, bytes: &[u8]) -> String {
    let text = BASE64.encode(bytes);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::authority::CLUSTER;
    use super::*;
    use pintle_controllers::signing_requests::Signer as _;
    use pintle_registry::request::Now;
    use rcgen::{CertificateParams, DnType, DnValue};
    use std::time::SystemTime;
    use x509_parser::extensions::GeneralName;

    const NOW: i64 = 1_800_000_000;

    /// A certificate in DER, and its authority's.
    fn signed(names: &[&str], usages: &[&str], seconds: i64) -> Result<(Vec<u8>, Vec<u8>), String> {
        signed_for(&KeyPair::generate().unwrap(), names, usages, seconds)
    }

    fn signed_for(
        key: &KeyPair,
        names: &[&str],
        usages: &[&str],
        seconds: i64,
    ) -> Result<(Vec<u8>, Vec<u8>), String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::OrganizationName, "dev");
        params.distinguished_name.push(DnType::CommonName, "jane");
        signed_as(&params, key, usages, seconds)
    }

    fn signed_as(
        params: &CertificateParams,
        key: &KeyPair,
        usages: &[&str],
        seconds: i64,
    ) -> Result<(Vec<u8>, Vec<u8>), String> {
        let signer =
            Signer::of(&Authority::prepare(&CLUSTER, None, SystemTime::now()).unwrap()).unwrap();
        let made = params.serialize_request(key).unwrap();
        let request = CertificateRequest::from_pem(made.pem().unwrap().as_bytes()).unwrap();
        let now = Now { unix_micros: NOW * time::SECOND };
        let text = signer.sign(&Order { request: &request, usages, seconds, now })?;
        let (_, block) = x509_parser::pem::parse_x509_pem(text.as_bytes()).unwrap();
        Ok((block.contents, signer.certificate))
    }

    #[test]
    fn keys_of_many_kinds_get_certificates() {
        for kind in [
            &rcgen::PKCS_ECDSA_P256_SHA256,
            &rcgen::PKCS_ECDSA_P384_SHA384,
            &rcgen::PKCS_ECDSA_P521_SHA512,
            &rcgen::PKCS_ED25519,
        ] {
            let key = KeyPair::generate_for(kind).unwrap();
            let signed = signed_for(&key, &[], &["client auth"], 3600);
            assert!(signed.is_ok(), "{kind:?} {signed:?}");
        }
    }

    #[test]
    fn a_certificate_says_what_was_asked_for() {
        let usages = ["client auth", "digital signature", "key encipherment"];
        let names = ["example.com", "192.0.2.1"];
        let (certificate, authority) = signed(&names, &usages, 3600).unwrap();
        let (_, authority) = X509Certificate::from_der(&authority).unwrap();
        let (rest, certificate) = X509Certificate::from_der(&certificate).unwrap();
        assert!(rest.is_empty());
        certificate.verify_signature(Some(authority.public_key())).unwrap();
        assert_eq!(certificate.issuer(), authority.subject());
        assert!(certificate.subject().to_string().contains("CN=jane"));
        let times = (certificate.validity().not_before, certificate.validity().not_after);
        assert_eq!((times.0.timestamp(), times.1.timestamp()), (NOW - 300, NOW + 3600));
        let usage = certificate.key_usage().unwrap().unwrap();
        assert!(
            usage.critical && usage.value.digital_signature() && usage.value.key_encipherment()
        );
        assert!(!usage.value.key_cert_sign());
        let purpose = certificate.extended_key_usage().unwrap().unwrap().value;
        assert!(purpose.client_auth && !purpose.server_auth);
        assert!(!certificate.is_ca());
        let names = &certificate.subject_alternative_name().unwrap().unwrap().value.general_names;
        let address = GeneralName::IPAddress(&[192, 0, 2, 1]);
        assert_eq!(*names, [GeneralName::DNSName("example.com"), address]);
    }

    #[test]
    fn a_certificate_has_the_subject_that_was_read_and_no_more() {
        let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let group = DnValue::BmpString("ops".try_into().unwrap());
        let name = DnValue::TeletexString("jane".try_into().unwrap());
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.distinguished_name.push(uid, "42");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let (certificate, _) = signed_as(&params, &key, &["client auth"], 3600).unwrap();
        let user = pintle_auth::certificate::holder(&certificate).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", ""));
        assert_eq!(user.groups, ["ops", "system:authenticated"]);
        // Written as PrintableString, which every reader of certificates knows.
        let (_, certificate) = X509Certificate::from_der(&certificate).unwrap();
        assert_eq!(certificate.subject().to_string(), "O=ops, CN=jane");
    }

    #[test]
    fn clients_have_all_their_groups() {
        let signer =
            Signer::of(&Authority::prepare(&CLUSTER, None, SystemTime::now()).unwrap()).unwrap();
        let made = signer.client("jane", &["dev", "ops"]).unwrap();
        let (_, block) = x509_parser::pem::parse_x509_pem(made.certificate_pem.as_bytes()).unwrap();
        let holder = pintle_auth::certificate::holder(&block.contents).unwrap().unwrap();
        assert_eq!(holder.name, "jane");
        assert_eq!(holder.groups, ["dev", "ops", "system:authenticated"]);
    }

    #[test]
    fn long_lives_end_a_little_earlier_and_with_the_authority() {
        let end = |seconds| {
            let (certificate, _) = signed(&[], &["decipher only"], seconds).unwrap();
            let (_, certificate) = X509Certificate::from_der(&certificate).unwrap();
            certificate.validity().not_after.timestamp()
        };
        assert_eq!(end(10 * 3600), NOW + 10 * 3600 - 300);
        assert!(end(100 * 365 * 24 * 3600) < NOW + 11 * 365 * 24 * 3600);
    }

    #[test]
    fn unknown_usages_are_refused() {
        let refused = signed(&[], &["client auth", "x", "y"], 3600).unwrap_err();
        assert_eq!(refused, r#"unrecognized usage values: ["x" "y"]"#);
    }

    #[test]
    fn lengths_are_as_short_as_they_can_be() {
        for (count, head) in
            [(0, &[0_u8][..]), (127, &[127]), (128, &[0x81, 128]), (300, &[0x82, 1, 44])]
        {
            let found = der(SEQUENCE, &vec![0; count]);
            assert_eq!(&found[1..=head.len()], head, "{count}");
        }
    }
}
