//! Certificates and keys of the forms that harnesses generate.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
};

/// The file of kwokctl's `--tracing-config-file`. No collector listens at its endpoint.
const TRACING: &str = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\n\
                       endpoint: 127.0.0.1:9\nsamplingRatePerMillion: 0\n";

/// Writes the files of envtest and kwokctl: an authority that signs the server's and the client's
/// certificates, a certificate for the key that signs tokens, and kwokctl's configuration of
/// traces.
pub(crate) fn signed(directory: &Path) {
    let authority_key = KeyPair::generate().expect("a key");
    let mut params = params("authority", "", &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = params.self_signed(&authority_key).expect("signed");
    write(directory, "ca.crt", &authority.pem());
    write(directory, "tracing.yaml", TRACING);
    let issuer = Issuer::new(params, authority_key);
    let pairs = [
        ("apiserver", "server", "", &["127.0.0.1", "localhost"][..]),
        ("client", "admin", "system:masters", &[]),
        ("sa-signer", "sa-signer", "", &[]),
    ];
    for (file, name, group, names) in pairs {
        let key = KeyPair::generate().expect("a key");
        let certificate = self::params(name, group, names).signed_by(&key, &issuer);
        write(directory, &format!("{file}.crt"), &certificate.expect("signed").pem());
        write(directory, &format!("{file}.key"), &key.serialize_pem());
    }
}

/// Writes the files of kube-api-test: RSA keys in PKCS #1, and self-signed certificates.
pub(crate) fn self_signed(directory: &Path) {
    let pairs = [
        ("apiserver", "example.org", "", &["127.0.0.1", "kubernetes"][..]),
        ("client", "kubeapitest", "system:masters", &[]),
    ];
    for (file, name, group, names) in pairs {
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("a key");
        let mut params = params(name, group, names);
        params.extended_key_usages.clear();
        let certificate = params.self_signed(&key).expect("signed");
        write(directory, &format!("{file}.crt"), &certificate.pem());
        write(directory, &format!("{file}.key"), &old_form(&key));
    }
    fs::copy(directory.join("apiserver.crt"), directory.join("ca.crt")).expect("copied");
}

/// A key of 2048 bits in PKCS #1, which is the last part of its encoding in PKCS #8.
fn old_form(key: &KeyPair) -> String {
    const AROUND: usize = 26;
    let text = BASE64.encode(&key.serialize_der()[AROUND..]);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
        lines.join("\n")
    )
}

fn params(name: &str, group: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let purpose = if names.is_empty() {
        ExtendedKeyUsagePurpose::ClientAuth
    } else {
        ExtendedKeyUsagePurpose::ServerAuth
    };
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name = DistinguishedName::new();
    if !group.is_empty() {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![purpose];
    params
}

fn write(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join(name), text).expect("written");
}
