//! Certificates and keys for the rows, valid and damaged ones.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Writes an authority (`ca.crt`), and two pairs that it signed: `server.crt` with `server.key`,
/// and `other.crt` with `other.key`. `half.crt` is the first half of a certificate, `damaged.crt`
/// has a certificate's frame around other bytes, and `mixed.crt` both a certificate and such a
/// frame.
pub(crate) fn write_pki(directory: &Path) {
    fs::create_dir(directory).expect("a directory");
    let write = |name: &str, text: &str| {
        fs::write(directory.join(name), text).expect("written");
    };
    let authority_key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).expect("signed").pem();
    write("ca.crt", &authority);
    let issuer = Issuer::new(params, authority_key);
    for name in ["server", "other"] {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &issuer).expect("signed");
        write(&format!("{name}.crt"), &certificate.pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    }
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    write("half.crt", &authority[..authority.len() / 2]);
    write("damaged.crt", damaged);
    write("mixed.crt", &format!("{authority}{damaged}"));
}
