//! A certificate signing request (PKCS #10), and whether a known signer may grant it.
//!
//! Names and texts are upstream's: `pkg/apis/certificates/helpers.go` and the signers of
//! kube-controller-manager.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustls_pki_types::pem::{PemObject, SectionKind};
use x509_parser::asn1_rs::{Class, Tag};
use x509_parser::prelude::FromDer;

use crate::Error;
use crate::der::{Item, Malformed, items};
use crate::distinguished_name::DistinguishedName;

/// The signer of clients of the API server.
pub const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of kubelets as clients of the API server.
pub const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of kubelets as servers.
pub const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// The signer that grants everything; the API takes no new requests for it.
pub const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// The attribute with the requested extensions: 1.2.840.113549.1.9.14.
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14];
/// The extension with subject alternative names: 2.5.29.17.
const SUBJECT_ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];

/// The parsed request. A certificate is made from this and not from the request's bytes, so that
/// nothing is signed that was not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The subject.
    pub subject: DistinguishedName,
    /// DNS names.
    pub dns_names: Vec<String>,
    /// IP addresses, of four or sixteen bytes.
    pub addresses: Vec<Vec<u8>>,
    /// Mail addresses.
    pub mail_addresses: Vec<String>,
    /// URIs.
    pub uris: Vec<String>,
    /// The public key, in DER.
    pub key: Vec<u8>,
    /// The signed bytes.
    pub signed: Vec<u8>,
    /// The signature.
    pub signature: Vec<u8>,
}

impl CertificateRequest {
    /// Parses the first block of a PEM text.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        let der = first_block(pem);
        let der = der.ok_or_else(|| wrong("PEM block type must be CERTIFICATE REQUEST"))?;
        Self::from_der(&der).map_err(|Malformed(why)| wrong(why))
    }

    /// Parses a request in DER.
    pub fn from_der_bytes(der: &[u8]) -> Result<Self, Error> {
        Self::from_der(der).map_err(|Malformed(why)| wrong(why))
    }

    fn from_der(der: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "a request consists of a signed part, an algorithm, and a signature";
        let parts = Item::only(der, WHAT)?.within(Tag::Sequence, WHAT)?;
        let [signed, _algorithm, signature] = parts.as_slice() else { return Err(Malformed(WHAT)) };
        const SIGNED: &str =
            "the signed part of a request consists of a version, a name, a key, and attributes";
        let parts = signed.within(Tag::Sequence, SIGNED)?;
        let [version, subject, key, attributes] = parts.as_slice() else {
            return Err(Malformed(SIGNED));
        };
        version.primitive(Tag::Integer, SIGNED)?;
        key.within(Tag::Sequence, SIGNED)?;
        if (attributes.class, attributes.tag) != (Class::ContextSpecific, 0) {
            return Err(Malformed(SIGNED));
        }
        let [0, signature @ ..] = signature.primitive(Tag::BitString, WHAT)? else {
            return Err(Malformed("a signature is of whole bytes"));
        };
        let mut request = Self {
            subject: DistinguishedName::read(subject.raw)?,
            key: key.raw.to_vec(),
            signed: signed.raw.to_vec(),
            signature: signature.to_vec(),
            ..Self::default()
        };
        for (id, value) in extensions(attributes.content)? {
            if id == SUBJECT_ALTERNATIVE_NAMES {
                request.take_names(value)?;
            }
        }
        Ok(request)
    }

    /// Adds subject alternative names. Other types of names are never granted.
    fn take_names(&mut self, der: &[u8]) -> Result<(), Malformed> {
        const WHAT: &str = "other names are texts of ASCII characters and addresses";
        for name in Item::only(der, WHAT)?.within(Tag::Sequence, WHAT)? {
            let text = || {
                let text = str::from_utf8(name.content).ok().filter(|text| text.is_ascii());
                text.map(str::to_owned).ok_or(Malformed(WHAT))
            };
            match (name.class, name.tag) {
                (Class::ContextSpecific, 1) => self.mail_addresses.push(text()?),
                (Class::ContextSpecific, 2) => self.dns_names.push(text()?),
                (Class::ContextSpecific, 6) => self.uris.push(text()?),
                (Class::ContextSpecific, 7) if matches!(name.content.len(), 4 | 16) => {
                    self.addresses.push(name.content.to_vec());
                }
                (Class::ContextSpecific, 7) => return Err(Malformed(WHAT)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that a known signer may grant the request with these usages; `None` for an unknown
    /// signer.
    pub fn check(&self, signer: &str, usages: &[&str]) -> Option<Result<(), String>> {
        match signer {
            API_CLIENT => Some(check_api_client(usages)),
            KUBELET_CLIENT => Some(self.check_kubelet_client(usages)),
            KUBELET_SERVING => Some(self.check_kubelet_serving(usages)),
            LEGACY => Some(Ok(())),
            _ => None,
        }
    }

    fn check_kubelet_client(&self, usages: &[&str]) -> Result<(), String> {
        self.check_organization()?;
        let kinds = [
            ("DNS", self.dns_names.is_empty()),
            ("Email", self.mail_addresses.is_empty()),
            ("IP", self.addresses.is_empty()),
            ("URI", self.uris.is_empty()),
        ];
        if let Some((kind, _)) = kinds.iter().find(|(_, is_empty)| !is_empty) {
            return Err(format!("{kind} subjectAltNames are not allowed"));
        }
        self.check_common_name()?;
        check_kubelet_usages(usages, "client auth")
    }

    fn check_kubelet_serving(&self, usages: &[&str]) -> Result<(), String> {
        self.check_organization()?;
        if self.dns_names.is_empty() && self.addresses.is_empty() {
            return Err("DNS or IP subjectAltName is required".to_owned());
        }
        let kinds = [("Email", self.mail_addresses.is_empty()), ("URI", self.uris.is_empty())];
        if let Some((kind, _)) = kinds.iter().find(|(_, is_empty)| !is_empty) {
            return Err(format!("{kind} subjectAltNames are not allowed"));
        }
        check_kubelet_usages(usages, "server auth")?;
        self.check_common_name()
    }

    fn check_organization(&self) -> Result<(), String> {
        if self.subject.organizations().eq(["system:nodes"]) {
            return Ok(());
        }
        Err("subject organization is not system:nodes".to_owned())
    }

    fn check_common_name(&self) -> Result<(), String> {
        if self.subject.common_name().starts_with("system:node:") {
            return Ok(());
        }
        Err("subject common name does not begin with system:node:".to_owned())
    }
}

/// The bytes of the first block of a PEM text, if it is a request. Go skips a malformed block and
/// takes a later one; here such a text is an error, so that every reader sees the same request.
fn first_block(pem: &[u8]) -> Option<Vec<u8>> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
    const END: &str = "-----END CERTIFICATE REQUEST-----";
    let is_space = [' ', '\t', '\r'];
    let text = String::from_utf8_lossy(pem);
    let mut lines = text.split('\n').map(|line| line.trim_end_matches(is_space));
    lines.find(|line| line.starts_with("-----BEGIN ")).filter(|line| *line == BEGIN)?;
    let mut body = String::new();
    for line in lines {
        if line == END {
            return BASE64.decode(body).ok();
        }
        body.extend(line.chars().filter(|c| !is_space.contains(c)));
    }
    None
}

/// An extension: its identifier and its value.
type Extension<'a> = (&'a [u8], &'a [u8]);

/// The requested extensions; each may occur once.
fn extensions(attributes: &[u8]) -> Result<Vec<Extension<'_>>, Malformed> {
    const WHAT: &str = "an attribute of a request is an identifier with a set of values";
    const EXTENSION: &str = "an extension is an identifier with a value";
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for attribute in items(attributes, WHAT)? {
        let parts = attribute.within(Tag::Sequence, WHAT)?;
        let [id, values] = parts.as_slice() else { return Err(Malformed(WHAT)) };
        if id.primitive(Tag::Oid, WHAT)? != EXTENSION_REQUEST {
            continue;
        }
        let values = values.within(Tag::Set, WHAT)?;
        let [value] = values.as_slice() else { return Err(Malformed(WHAT)) };
        for extension in value.within(Tag::Sequence, EXTENSION)? {
            let parts = extension.within(Tag::Sequence, EXTENSION)?;
            let (id, value) = match parts.as_slice() {
                [id, value] => (id, value),
                [id, critical, value] if critical.is(Tag::Boolean) => (id, value),
                _ => return Err(Malformed(EXTENSION)),
            };
            let id = id.primitive(Tag::Oid, EXTENSION)?;
            if !seen.insert(id) {
                return Err(Malformed("a request asks for an extension once"));
            }
            found.push((id, value.primitive(Tag::OctetString, EXTENSION)?));
        }
    }
    Ok(found)
}

/// Checks the usages of a kubelet's certificate. `key encipherment` is optional, because only RSA
/// keys encipher keys.
fn check_kubelet_usages(usages: &[&str], purpose: &str) -> Result<(), String> {
    let usages: BTreeSet<&str> = usages.iter().copied().collect();
    let needed = BTreeSet::from([purpose, "digital signature"]);
    let with_rsa = &needed | &BTreeSet::from(["key encipherment"]);
    if usages == needed || usages == with_rsa {
        return Ok(());
    }
    let list: Vec<&str> = with_rsa.into_iter().collect();
    Err(format!("usages did not match [{}]", list.join(" ")))
}

fn check_api_client(usages: &[&str]) -> Result<(), String> {
    const ALLOWED: &[&str] = &["digital signature", "key encipherment", "client auth"];
    if let Some(other) = usages.iter().find(|usage| !ALLOWED.contains(usage)) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    if !usages.contains(&"client auth") {
        return Err("missing required usage for client certificate: client auth".to_owned());
    }
    Ok(())
}

/// The last second of validity, since 1970, of the certificate that is the first block of a PEM
/// text; `None` if the first block is no certificate.
pub fn not_after(pem: &[u8]) -> Option<i64> {
    let (kind, der) = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).next()?.ok()?;
    let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(&der).ok()?;
    (kind == SectionKind::Certificate).then(|| certificate.validity().not_after.timestamp())
}

fn wrong(why: &str) -> Error {
    Error::CertificateRequest(why.to_owned())
}
