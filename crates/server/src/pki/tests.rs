use std::fs;
use std::path::Path;
use std::time::Duration;

use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::*;

fn wanted(directory: &Path) -> Wanted {
    Wanted { directory: Some(directory.to_owned()), ..Wanted::default() }
}

fn prepare(wanted: &Wanted) -> Result<Pki, Error> {
    Pki::prepare(wanted, SystemTime::now())
}

fn serving(pki: &Pki) -> Vec<u8> {
    pki.listener.serving.chain().unwrap()[0].to_vec()
}

#[test]
fn certificates_are_generated_once_and_reused() {
    let directory = tempfile::tempdir().unwrap();
    let first = prepare(&wanted(directory.path())).unwrap();
    let second = prepare(&wanted(directory.path())).unwrap();
    assert_eq!(first.ca_pem, second.ca_pem);
    assert_eq!(serving(&first), serving(&second));
    assert_eq!(first.admin.certificate_pem, second.admin.certificate_pem);
}

#[test]
fn a_serving_certificate_without_a_needed_name_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let first = prepare(&wanted(directory.path())).unwrap();
    let elsewhere =
        Wanted { serving_addresses: vec![[192, 0, 2, 7].into()], ..wanted(directory.path()) };
    let second = prepare(&elsewhere).unwrap();
    assert_eq!(first.ca_pem, second.ca_pem);
    assert_ne!(serving(&first), serving(&second));
    // A certificate with more names than needed is reused.
    assert_eq!(serving(&prepare(&wanted(directory.path())).unwrap()), serving(&second));
}

#[test]
fn a_serving_certificate_of_another_authority_is_replaced() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = prepare(&wanted(one.path())).unwrap();
    prepare(&wanted(other.path())).unwrap();
    for file in ["ca.crt", "ca.key"] {
        fs::copy(other.path().join(file), one.path().join(file)).unwrap();
    }
    assert_ne!(serving(&first), serving(&prepare(&wanted(one.path())).unwrap()));
}

/// The key identifiers of a certificate: of its authority, and its own.
fn key_identifiers(der: &[u8]) -> [Option<Vec<u8>>; 2] {
    let (_, certificate) = X509Certificate::from_der(der).unwrap();
    let mut found = [None, None];
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                found[0] = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            ParsedExtension::SubjectKeyIdentifier(id) => found[1] = Some(id.0.to_vec()),
            _ => {}
        }
    }
    found
}

#[test]
fn certificates_name_the_key_of_their_authority() {
    let directory = tempfile::tempdir().unwrap();
    let pki = prepare(&wanted(directory.path())).unwrap();
    let der = |pem: &str| pem::certificates(Path::new("x"), pem).unwrap()[0].to_vec();
    let [_, of_authority] = key_identifiers(&der(&pki.ca_pem));
    assert!(of_authority.is_some());
    for pem in [&pki.listener.serving.certificate_pem, &pki.admin.certificate_pem] {
        assert_eq!(key_identifiers(&der(pem))[0], of_authority);
    }

    // One of an earlier release, which does not, is replaced.
    let file = |name: &str| directory.path().join(name);
    let read = |name: &str| fs::read_to_string(file(name)).unwrap();
    let key = rcgen::KeyPair::from_pem(&read("ca.key")).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(&read("ca.crt"), key).unwrap();
    let own = rcgen::KeyPair::from_pem(&read("apiserver.key")).unwrap();
    let old = rcgen::CertificateParams::default().signed_by(&own, &issuer).unwrap();
    let admin = rcgen::KeyPair::from_pem(&read("admin.key")).unwrap();
    let old_admin = rcgen::CertificateParams::default().signed_by(&admin, &issuer).unwrap();
    assert_eq!(key_identifiers(old.der())[0], None);
    fs::write(file("apiserver.crt"), old.pem()).unwrap();
    fs::write(file("admin.crt"), old_admin.pem()).unwrap();
    let renewed = prepare(&wanted(directory.path())).unwrap();
    for pem in [&renewed.listener.serving.certificate_pem, &renewed.admin.certificate_pem] {
        assert_eq!(key_identifiers(&der(pem))[0], of_authority);
    }
}

#[test]
fn an_authority_without_its_key_is_an_error_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    prepare(&wanted(directory.path())).unwrap();
    fs::remove_file(directory.path().join("ca.key")).unwrap();
    let error = prepare(&wanted(directory.path())).err().unwrap().to_string();
    assert!(error.contains("one is missing; put it back"), "{error}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("data/pki");
    prepare(&wanted(&inner)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&inner), mode(inner.parent().unwrap())), (0o700, 0o700));
    for entry in fs::read_dir(&inner).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn the_serving_certificate_has_all_names_of_the_server() {
    let pki = prepare(&Wanted::default()).unwrap();
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
fn errors_of_certificate_files_name_flag_and_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("nonsense.pem"), "nonsense").unwrap();
    let made = prepare(&wanted(directory.path())).unwrap();
    fs::write(path("admin.pem"), &made.admin.certificate_pem).unwrap();
    let check = |wanted: Wanted, expected: &str| {
        let error = match prepare(&wanted) {
            Ok(_) => panic!("{expected}"),
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
        "--cert-dir: /nonsense.pem is a file, not a directory; choose another directory, or move the file away",
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
        "--tls-private-key-file: /apiserver.key: this key is not that of the certificate in /admin.pem",
    );
}

/// If a CA issued for both, each client with a certificate could claim to be any user.
#[test]
fn client_and_front_proxy_authorities_must_differ_unless_proxies_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    prepare(&wanted(directory.path())).unwrap();
    let other = prepare(&Wanted::default()).unwrap();
    fs::write(file("other.crt"), &other.ca_pem).unwrap();
    fs::write(
        file("both.crt"),
        [other.ca_pem, fs::read_to_string(file("ca.crt")).unwrap()].concat(),
    )
    .unwrap();
    for (clients, proxies, is_accepted) in [
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
            let refused = prepare(&wanted).err().map(|why| why.to_string());
            assert_eq!(
                refused.is_none(),
                is_accepted || named,
                "{clients:?} {proxies}: {refused:?}"
            );
            let names_it = |why: &String| why.starts_with("--requestheader-client-ca-file: ");
            assert!(refused.as_ref().is_none_or(names_it), "{refused:?}");
        }
    }
}

/// A front proxy can claim to be any user, so no client's certificate may be of its authority.
#[test]
fn the_servers_front_proxy_certificate_has_its_own_authority() {
    let directory = tempfile::tempdir().unwrap();
    let pki = prepare(&wanted(directory.path())).unwrap();
    let again = prepare(&wanted(directory.path())).unwrap();
    assert_eq!(pki.front_proxy.ca_pem, again.front_proxy.ca_pem);
    assert_ne!(pki.front_proxy.ca_pem, pki.ca_pem);
    assert!(!pki.listener.clients.pem.contains(&pki.front_proxy.ca_pem));
    assert!(pki.listener.front_proxies.is_none(), "this server accepts no front proxy");
    let der = |pem: &str| pem::certificates(Path::new("x"), pem).unwrap().swap_remove(0);
    let (client, authority) =
        (der(&pki.front_proxy.client.load().certificate_pem), der(&pki.front_proxy.ca_pem));
    let (_, client) = X509Certificate::from_der(&client).unwrap();
    let (_, authority) = X509Certificate::from_der(&authority).unwrap();
    client.verify_signature(Some(authority.public_key())).unwrap();
    assert_eq!(client.subject().to_string(), "CN=front-proxy-client");
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn valid(pem: &str) -> Validity {
    let chain = pem::certificates(Path::new("x"), pem).unwrap();
    Validity::of(&chain[0]).unwrap()
}

/// At each time in the life of an authority, new certificates are valid and do not outlive it.
/// Before and after its life no certificate is generated.
#[test]
fn no_certificate_outlives_its_authority() {
    let directory = tempfile::tempdir().unwrap();
    let (wanted, start) = (wanted(directory.path()), SystemTime::now());
    let authority = valid(&Pki::prepare(&wanted, start).unwrap().ca_pem);
    let ends = SystemTime::UNIX_EPOCH + Duration::from_secs(authority.until.cast_unsigned());
    let mut generated = Vec::new();
    for now in [
        start,
        start + DAY * 300,
        start + DAY * 340,
        ends - DAY * 366,
        ends - DAY * 200,
        ends - DAY * 31,
        ends - DAY * 29,
        ends - DAY,
        ends - Duration::from_secs(1),
    ] {
        let pki = Pki::prepare(&wanted, now).unwrap();
        assert_eq!(valid(&pki.ca_pem), authority);
        for pem in [&pki.listener.serving.certificate_pem, &pki.admin.certificate_pem] {
            let validity = valid(pem);
            assert_eq!(validity.problem(seconds(now)), None);
            assert!(validity.until <= authority.until, "{validity:?} outlives {authority:?}");
            let lasts = seconds(now + DAY * 30).min(authority.until);
            assert!(validity.until >= lasts, "{validity:?} ends before {lasts}");
        }
        // The certificate is reused until it must be replaced. Near the end of the CA, a new one
        // would not end later.
        assert_eq!(serving(&pki), serving(&Pki::prepare(&wanted, now).unwrap()));
        generated.push(serving(&pki));
    }
    generated.dedup();
    assert_eq!(generated.len(), 4, "at the start, after eleven months, and near the end");

    for (now, expected) in [
        (ends + DAY, "it ended at "),
        (start - DAY, "it is valid from "),
        (SystemTime::UNIX_EPOCH, "it is valid from "),
    ] {
        let error = Pki::prepare(&wanted, now).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("/ca.crt: this authority cannot be used"), "{error}");
        assert!(error.contains("remove ca.crt and ca.key to get a new authority"), "{error}");
    }
}

/// A crash may leave a new key beside an old certificate. The next start replaces both.
#[test]
fn a_key_that_does_not_fit_its_certificate_is_replaced_with_it() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = prepare(&wanted(one.path())).unwrap();
    prepare(&wanted(other.path())).unwrap();
    fs::copy(other.path().join("apiserver.key"), one.path().join("apiserver.key")).unwrap();
    let second = prepare(&wanted(one.path())).unwrap();
    assert_ne!(serving(&first), serving(&second));
    crate::tls::Tls::new(&second.listener, &crate::TlsParameters::default()).unwrap();
}

/// A server that runs for years always has valid certificates, without a restart.
#[test]
fn certificates_are_renewed_while_the_server_runs() {
    for directory in [None, Some(tempfile::tempdir().unwrap())] {
        let wanted = directory.as_ref().map_or_else(Wanted::default, |it| self::wanted(it.path()));
        let start = SystemTime::now();
        let Pki { listener, mut renewal, admin, kubelet_client, front_proxy, .. } =
            Pki::prepare(&wanted, start).unwrap();
        let (mut serving, mut admin) = (listener.serving.certificate_pem, admin.certificate_pem);
        let mut renewed = 0;
        for day in 0..800 {
            let now = start + DAY * day;
            for change in renewal.renew(now).unwrap() {
                renewed += 1;
                match change {
                    Change::Listener(listener) => serving = listener.serving.certificate_pem,
                    Change::Admin(credentials) => admin = credentials.certificate_pem,
                }
            }
            let clients = [&kubelet_client, &front_proxy.client].map(|client| client.load_full());
            for pem in [&serving, &admin, &clients[0].certificate_pem, &clients[1].certificate_pem]
            {
                assert_eq!(valid(pem).problem(seconds(now)), None, "day {day}");
            }
        }
        assert_eq!(renewed, 4, "the serving certificate and the administrator's, twice each");
    }
}

/// While a certificate does not fit its key, or a file is missing or truncated, the certificates
/// that were read before stay in use. A problem of one file does not stop the reload of the others.
#[test]
fn certificate_files_are_reloaded_and_inconsistent_ones_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (one, other) = (prepare(&Wanted::default()).unwrap(), prepare(&Wanted::default()).unwrap());
    let write = |name: &str, text: &str| fs::write(path(name), text).unwrap();
    let serving = |pki: &Pki| pki.listener.serving.clone();
    write("tls.crt", &serving(&one).certificate_pem);
    write("tls.key", &serving(&one).key_pem);
    write("ca.crt", &one.ca_pem);
    let wanted = Wanted {
        serving_files: Some((path("tls.crt"), path("tls.key"))),
        client_ca_file: Some(path("ca.crt")),
        ..Wanted::default()
    };
    let mut renewal = prepare(&wanted).unwrap().renewal;
    let mut check_reload = |expected: Option<(&Pki, &Pki)>| {
        let Some(change) = renewal.reread().unwrap() else { return assert!(expected.is_none()) };
        let Change::Listener(listener) = change else {
            panic!("the administrator's certificate is not a file")
        };
        let (served, authority) = expected.expect("the files are unchanged");
        assert_eq!(listener.serving.certificate_pem, serving(served).certificate_pem);
        assert!(listener.clients.pem.ends_with(&authority.ca_pem));
        assert_eq!(listener.clients.roots(|_| true).len(), 2);
    };
    check_reload(None);
    write("tls.key", &serving(&other).key_pem);
    check_reload(None);
    check_reload(None);
    write("ca.crt", &other.ca_pem);
    check_reload(Some((&one, &other)));
    write("tls.crt", &serving(&other).certificate_pem);
    check_reload(Some((&other, &other)));
    let half = &one.ca_pem[..one.ca_pem.len() / 2];
    write("ca.crt", half);
    check_reload(None);
    fs::remove_file(path("ca.crt")).unwrap();
    check_reload(None);
    write("ca.crt", &one.ca_pem);
    check_reload(Some((&other, &one)));
    check_reload(None);
}
