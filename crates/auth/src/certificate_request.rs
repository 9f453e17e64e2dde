//! What a request for a certificate asks for (PKCS #10), and whether a known signer may grant it.
//!
//! Names and words are upstream's: `pkg/apis/certificates/helpers.go` and the signers of
//! kube-controller-manager.

use std::collections::BTreeSet;

use rustls_pki_types::pem::{PemObject, SectionKind};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

use crate::Error;

/// The signer of clients of the API server.
pub const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of kubelets as clients of the API server.
pub const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of kubelets as servers.
pub const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// The signer that grants everything; the API takes no new requests for it.
pub const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// A request that can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRequest {
    /// As it came, in DER.
    pub der: Vec<u8>,
    /// The name in the subject.
    pub common_name: String,
    /// The groups in the subject.
    pub organizations: Vec<String>,
    /// Other names: DNS names.
    pub dns_names: Vec<String>,
    /// Other names: addresses, four bytes or sixteen.
    pub addresses: Vec<Vec<u8>>,
    /// Other names: mail addresses.
    pub mail_addresses: Vec<String>,
    /// Other names: URIs.
    pub uris: Vec<String>,
}

impl CertificateRequest {
    /// Reads the first block of a PEM text.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        let first = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).next();
        match first {
            Some(Ok((SectionKind::Csr, der))) => Self::from_der(der),
            _ => Err(wrong("PEM block type must be CERTIFICATE REQUEST")),
        }
    }

    fn from_der(der: Vec<u8>) -> Result<Self, Error> {
        let (rest, parsed) =
            X509CertificationRequest::from_der(&der).map_err(|why| wrong(&why.to_string()))?;
        if !rest.is_empty() {
            return Err(wrong("something follows it"));
        }
        let mut request = Self::default();
        let subject = &parsed.certification_request_info.subject;
        let name = subject.iter_common_name().filter_map(|name| name.as_str().ok()).last();
        request.common_name = name.unwrap_or_default().to_owned();
        let organizations = subject.iter_organization().filter_map(|group| group.as_str().ok());
        request.organizations = organizations.map(str::to_owned).collect();
        for extension in parsed.requested_extensions().into_iter().flatten() {
            let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
            for name in &names.general_names {
                match name {
                    GeneralName::DNSName(name) => request.dns_names.push((*name).to_owned()),
                    GeneralName::IPAddress(bytes) => request.addresses.push(bytes.to_vec()),
                    GeneralName::RFC822Name(name) => {
                        request.mail_addresses.push((*name).to_owned());
                    }
                    GeneralName::URI(uri) => request.uris.push((*uri).to_owned()),
                    _ => {} // as upstream: no other kind is granted
                }
            }
        }
        drop(parsed);
        request.der = der;
        Ok(request)
    }

    /// Whether a known signer may grant it, for such usages; `None` for a signer that is not known.
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
        if self.organizations == ["system:nodes"] {
            return Ok(());
        }
        Err("subject organization is not system:nodes".to_owned())
    }

    fn check_common_name(&self) -> Result<(), String> {
        if self.common_name.starts_with("system:node:") {
            return Ok(());
        }
        Err("subject common name does not begin with system:node:".to_owned())
    }
}

/// What kubelets need; keys other than RSA encipher no keys.
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

/// The last second of a certificate's life, since 1970; of the first one in a PEM text.
pub fn not_after(pem: &[u8]) -> Option<i64> {
    let (kind, der) = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).next()?.ok()?;
    let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(&der).ok()?;
    (kind == SectionKind::Certificate).then(|| certificate.validity().not_after.timestamp())
}

fn wrong(why: &str) -> Error {
    Error::CertificateRequest(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    const CLIENT: &[&str] = &["client auth", "digital signature"];
    const SERVING: &[&str] = &["digital signature", "server auth", "key encipherment"];

    fn request(subject: &[(DnType, &str)], names: &[&str]) -> CertificateRequest {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let made = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
        CertificateRequest::from_pem(made.pem().unwrap().as_bytes()).unwrap()
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let subject = [(DnType::OrganizationName, "dev"), (DnType::CommonName, "jane")];
        let read = request(&subject, &["example.com", "192.0.2.1"]);
        assert_eq!((read.common_name.as_str(), read.organizations.len()), ("jane", 1));
        assert_eq!(read.dns_names, ["example.com"]);
        assert_eq!(read.addresses, [[192, 0, 2, 1]]);
        for wrong in ["", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(CertificateRequest::from_pem(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    fn check(
        signer: &str,
        (organization, name, names): (&str, &str, &[&str]),
        usages: &[&str],
        expected: Option<&str>,
    ) {
        let mut subject = vec![(DnType::CommonName, name)];
        if !organization.is_empty() {
            subject.push((DnType::OrganizationName, organization));
        }
        let found = request(&subject, names).check(signer, usages).expect("it is known");
        assert_eq!(found.err().as_deref(), expected, "{signer} {organization} {name}");
    }

    #[test]
    fn signers_grant_what_they_are_for() {
        const NODE: (&str, &str, &[&str]) = ("system:nodes", "system:node:a", &[]);
        const SERVER: (&str, &str, &[&str]) = ("system:nodes", "system:node:a", &["a"]);
        check(KUBELET_CLIENT, NODE, CLIENT, None);
        check(
            KUBELET_CLIENT,
            NODE,
            &["client auth", "digital signature", "key encipherment"],
            None,
        );
        let words = "subject organization is not system:nodes";
        check(KUBELET_CLIENT, ("", "system:node:a", &[]), CLIENT, Some(words));
        let words = "subject common name does not begin with system:node:";
        check(KUBELET_CLIENT, ("system:nodes", "a", &[]), CLIENT, Some(words));
        check(KUBELET_CLIENT, SERVER, CLIENT, Some("DNS subjectAltNames are not allowed"));
        let words = "usages did not match [client auth digital signature key encipherment]";
        check(KUBELET_CLIENT, NODE, SERVING, Some(words));

        check(KUBELET_SERVING, SERVER, SERVING, None);
        check(KUBELET_SERVING, NODE, SERVING, Some("DNS or IP subjectAltName is required"));
        let words = "usages did not match [digital signature key encipherment server auth]";
        check(KUBELET_SERVING, SERVER, CLIENT, Some(words));

        check(API_CLIENT, ("dev", "jane", &[]), &["client auth"], None);
        let words = "missing required usage for client certificate: client auth";
        check(API_CLIENT, ("dev", "jane", &[]), &["digital signature"], Some(words));
        let words = "invalid usage for client certificate: server auth";
        check(API_CLIENT, ("dev", "jane", &[]), SERVING, Some(words));

        check(LEGACY, ("", "anything", &["x"]), &["code signing"], None);
        assert_eq!(CertificateRequest::default().check("example.com/other", &[]), None);
    }
}
