use std::fs;
use std::path::Path;

use x509_parser::prelude::{FromDer, X509Certificate};

use super::*;

fn wanted(directory: &Path) -> Wanted {
    Wanted { directory: Some(directory.to_owned()), ..Wanted::default() }
}

fn serving(pki: &Pki) -> Vec<u8> {
    pki.serving.chain().unwrap()[0].to_vec()
}

#[test]
fn certificates_are_made_once_and_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let first = Pki::prepare(&wanted(directory.path())).unwrap();
    let second = Pki::prepare(&wanted(directory.path())).unwrap();
    assert_eq!(first.ca_pem, second.ca_pem);
    assert_eq!(serving(&first), serving(&second));
    assert_eq!(first.admin.certificate_pem, second.admin.certificate_pem);
}

#[test]
fn a_serving_certificate_that_lacks_a_name_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let first = Pki::prepare(&wanted(directory.path())).unwrap();
    let elsewhere = Wanted { bind_address: "192.0.2.7".parse().ok(), ..wanted(directory.path()) };
    let second = Pki::prepare(&elsewhere).unwrap();
    assert_eq!(first.ca_pem, second.ca_pem);
    assert_ne!(serving(&first), serving(&second));
    // with more names than it needs it is used again
    assert_eq!(serving(&Pki::prepare(&wanted(directory.path())).unwrap()), serving(&second));
}

#[test]
fn a_serving_certificate_of_another_authority_is_made_anew() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = Pki::prepare(&wanted(one.path())).unwrap();
    Pki::prepare(&wanted(other.path())).unwrap();
    for file in ["ca.crt", "ca.key"] {
        fs::copy(other.path().join(file), one.path().join(file)).unwrap();
    }
    assert_ne!(serving(&first), serving(&Pki::prepare(&wanted(one.path())).unwrap()));
}

#[test]
fn half_an_authority_is_an_error_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    Pki::prepare(&wanted(directory.path())).unwrap();
    fs::remove_file(directory.path().join("ca.key")).unwrap();
    let error = Pki::prepare(&wanted(directory.path())).err().unwrap().to_string();
    assert!(error.contains("one is missing; put it back"), "{error}");
}

#[cfg(unix)]
#[test]
fn files_are_their_owners() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("data/pki");
    Pki::prepare(&wanted(&inner)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&inner), mode(inner.parent().unwrap())), (0o700, 0o700));
    for entry in fs::read_dir(&inner).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn the_serving_certificate_names_what_clients_call_the_server() {
    let pki = Pki::prepare(&Wanted::default()).unwrap();
    let serving = serving(&pki);
    let (_, certificate) = X509Certificate::from_der(&serving).unwrap();
    let names = certificate.subject_alternative_name().unwrap().unwrap().value.to_owned();
    let text = format!("{:?}", names.general_names);
    for name in DNS_NAMES {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert_eq!(names.general_names.len(), DNS_NAMES.len() + ADDRESSES.len());
}

#[test]
fn what_cannot_be_used_is_named_with_its_flag() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("nonsense.pem"), "nonsense").unwrap();
    let made = Pki::prepare(&wanted(directory.path())).unwrap();
    fs::write(path("admin.pem"), &made.admin.certificate_pem).unwrap();
    let check = |wanted: Wanted, expected: &str| {
        let error = match Pki::prepare(&wanted) {
            Ok(pki) => crate::tls::Tls::new(&pki, &crate::TlsParameters::default()).err().unwrap(),
            Err(error) => error,
        };
        let shown = error.to_string().replace(&directory.path().display().to_string(), "");
        assert_eq!(shown, expected);
    };
    let serving = |certificate: &str, key: &str| Wanted {
        serving_files: Some((path(certificate), path(key))),
        ..Wanted::default()
    };
    check(
        Wanted { client_ca_file: Some(path("nonsense.pem")), ..Wanted::default() },
        "--client-ca-file: /nonsense.pem: there is no certificate in this file",
    );
    check(
        Wanted { front_proxy_ca_file: Some(path("absent.pem")), ..Wanted::default() },
        "--requestheader-client-ca-file: cannot read /absent.pem: No such file or directory (os error 2)",
    );
    check(
        Wanted { directory: Some(path("nonsense.pem")), ..Wanted::default() },
        "--cert-dir: cannot create the directory /nonsense.pem: File exists (os error 17)",
    );
    check(
        serving("nonsense.pem", "apiserver.key"),
        "--tls-cert-file: /nonsense.pem: there is no certificate in this file",
    );
    check(
        serving("apiserver.crt", "nonsense.pem"),
        "--tls-private-key-file: /nonsense.pem: this is not a private key in PEM: no items found",
    );
    check(
        serving("admin.pem", "apiserver.key"),
        "/apiserver.key: this key is not that of the certificate in /admin.pem",
    );
}

/// Whoever has a client's certificate could be anybody otherwise.
#[test]
fn clients_are_no_front_proxies_unless_they_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    Pki::prepare(&wanted(directory.path())).unwrap();
    let other = Pki::prepare(&Wanted::default()).unwrap();
    fs::write(file("other.crt"), &other.ca_pem).unwrap();
    fs::write(
        file("both.crt"),
        [other.ca_pem, fs::read_to_string(file("ca.crt")).unwrap()].concat(),
    )
    .unwrap();
    for (clients, proxies, holds) in [
        (None, "other.crt", true),
        (None, "ca.crt", false),
        (None, "both.crt", false),
        (Some("other.crt"), "other.crt", false),
    ] {
        for named in [false, true] {
            let wanted = Wanted {
                client_ca_file: clients.map(file),
                front_proxy_ca_file: Some(file(proxies)),
                front_proxies_are_named: named,
                ..wanted(directory.path())
            };
            let refused = Pki::prepare(&wanted).err().map(|why| why.to_string());
            assert_eq!(refused.is_none(), holds || named, "{clients:?} {proxies}: {refused:?}");
            let names_it = |why: &String| why.starts_with("--requestheader-client-ca-file: ");
            assert!(refused.as_ref().is_none_or(names_it), "{refused:?}");
        }
    }
}
