//! TLS to a real server that requires client certificates.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tokio::time::timeout;

use super::plain;
use super::server::Server;
use crate::client::{Client, Etcd};
use crate::error::Error;
use crate::opening::open;
use crate::store::Options;
use crate::tls::Tls;

/// Less than the time for which opening waits.
const AT_ONCE: Duration = Duration::from_secs(15);

/// The CA, and a certificate that it signed with its key; all PEM.
struct Signed {
    authority: String,
    certificate: String,
    key: String,
}

fn signed(usage: ExtendedKeyUsagePurpose, authority: Option<&Authority>) -> Signed {
    let own;
    let authority = match authority {
        Some(authority) => authority,
        None => {
            own = Authority::new();
            &own
        }
    };
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.extended_key_usages = vec![usage];
    let certificate = params.signed_by(&key, &authority.issuer).unwrap();
    Signed {
        authority: authority.pem.clone(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }
}

#[tokio::test]
async fn client_and_server_verify_each_others_certificates() {
    let authority = Authority::new();
    let server = signed(ExtendedKeyUsagePurpose::ServerAuth, Some(&authority));
    let client = signed(ExtendedKeyUsagePurpose::ClientAuth, Some(&authority));
    let dir = tempfile::tempdir().unwrap();
    for (name, pem) in
        [("ca", &server.authority), ("cert", &server.certificate), ("key", &server.key)]
    {
        fs::write(dir.path().join(name), pem).unwrap();
    }
    let arguments = [
        "--client-cert-auth",
        "--trusted-ca-file=DIR/ca",
        "--cert-file=DIR/cert",
        "--key-file=DIR/key",
    ];
    let Some(server) = Server::start_in(dir, "https", &arguments).await else { return };
    let tls = |authority: &Signed, identity: Option<&Signed>| Tls {
        authorities: Some(authority.authority.clone().into_bytes()),
        identity: identity
            .map(|pair| (pair.certificate.clone().into_bytes(), pair.key.clone().into_bytes())),
    };
    let stranger = signed(ExtendedKeyUsagePurpose::ClientAuth, None);
    let endpoints = [server.endpoint.clone()];
    let good = Client::new(&endpoints, &tls(&client, Some(&client)), &Arc::default()).unwrap();
    super::server::ready(&good).await;
    assert!(good.status().await.unwrap().version.starts_with("3."));
    for (why, tls, is_expected) in [
        ("no client certificate", tls(&client, None), of_client as fn(&Error) -> bool),
        ("one of another CA", tls(&client, Some(&stranger)), of_client),
        ("a server that is not trusted", tls(&stranger, Some(&client)), of_server),
    ] {
        let endpoints = endpoints.to_vec();
        let options = Options { endpoints, tls, ..Options::default() };
        let opened = timeout(AT_ONCE, open(&options, plain())).await;
        let error = opened.expect("it does not wait").err().expect(why);
        assert!(is_expected(&error), "{why}: {error:?}");
    }
}

const fn of_client(error: &Error) -> bool {
    matches!(error, Error::ClientCertificate(_))
}

const fn of_server(error: &Error) -> bool {
    matches!(error, Error::ServerCertificate(_))
}

#[test]
fn invalid_certificates_are_reported() {
    let pem = || b"-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n".to_vec();
    for tls in [
        Tls { authorities: Some(pem()), identity: None },
        Tls { authorities: Some(Vec::new()), identity: Some((pem(), pem())) },
        Tls { authorities: Some(Vec::new()), identity: Some((Vec::new(), Vec::new())) },
    ] {
        let error =
            Client::new(&["https://127.0.0.1:1".to_owned()], &tls, &Arc::default()).err().unwrap();
        assert!(matches!(error, Error::Configuration(_)), "{error}");
    }
    for endpoints in [&["127.0.0.1:2379"][..], &["ftp://a"], &["http://"], &[]] {
        let endpoints: Vec<_> = endpoints.iter().map(|url| (*url).to_owned()).collect();
        assert!(
            Client::new(&endpoints, &Tls::default(), &Arc::default()).is_err(),
            "{endpoints:?}"
        );
    }
}
