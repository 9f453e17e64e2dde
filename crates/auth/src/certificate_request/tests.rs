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
fn subject_and_names_of_a_request_are_read() {
    let subject = [(DnType::OrganizationName, "dev"), (DnType::CommonName, "jane")];
    let read = request(&subject, &["example.com", "192.0.2.1"]);
    assert_eq!(read.subject.common_name(), "jane");
    assert!(read.subject.organizations().eq(["dev"]));
    assert_eq!(read.dns_names, ["example.com"]);
    assert_eq!(read.addresses, [[192, 0, 2, 1]]);
}

/// A request with these parameters, as PEM.
fn pem(params: &CertificateParams) -> String {
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

#[test]
fn the_first_pem_block_must_be_the_request() {
    let request = pem(&CertificateParams::default());
    let body = request.lines().nth(1).unwrap();
    let other = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let unknown = "-----BEGIN X-----\nAAAA\n-----END X-----\n";
    for (text, is_read) in [
        (request.clone(), true),
        (format!("Subject: CN=jane\n{request}and more"), true),
        (format!("{request}{other}"), true),
        (request.replace('\n', "\r\n"), true),
        (request.replace(body, &format!(" {body}\t")), true),
        (String::new(), false),
        ("x".to_owned(), false),
        (other.to_owned(), false),
        // Go skips a block that it cannot decode and takes the next one.
        (format!("{other}{request}"), false),
        (format!("{unknown}{request}"), false),
        (format!("-----BEGIN CERTIFICATE REQUEST-----\n*\n{request}"), false),
        (request.replace(body, &format!("a: b\n\n{body}")), false),
        (request.replace("\n-----END", "-----END"), false),
        (request.replace("\n-----END", "\n-----END X"), false),
        (format!("x{request}"), false),
    ] {
        let read = CertificateRequest::from_pem(text.as_bytes());
        assert_eq!(read.is_ok(), is_read, "{text}");
    }
}

#[test]
fn an_unreadable_subject_is_an_error() {
    use rcgen::DnValue::{BmpString, TeletexString, UniversalString};
    let masters = "system:masters";
    for (value, expected) in [
        (masters.into(), Some(masters)),
        (BmpString(masters.try_into().unwrap()), Some(masters)),
        (TeletexString(masters.try_into().unwrap()), Some(masters)),
        (UniversalString(masters.try_into().unwrap()), None),
    ] {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, value);
        let read = CertificateRequest::from_pem(pem(&params).as_bytes()).ok();
        let group = read.as_ref().and_then(|read| read.subject.organizations().next());
        assert_eq!(group, expected);
    }
}

#[test]
fn unreadable_alternative_names_are_not_ignored() {
    let asked = |id: &[u64], names: &[&[u8]]| {
        let mut params = CertificateParams::default();
        for names in names {
            let names = rcgen::CustomExtension::from_oid_content(id, names.to_vec());
            params.custom_extensions.push(names);
        }
        CertificateRequest::from_pem(pem(&params).as_bytes())
    };
    const NAMES: &[u64] = &[2, 5, 29, 17];
    for (names, expected) in [
        (&b"\x30\x03\x82\x01a"[..], Some((1, 0))),
        (b"\x30\x06\x87\x04\x7f\0\0\x01", Some((0, 1))),
        // Types of names that no signer grants.
        (b"\x30\x03\x88\x01\x2a", Some((0, 0))),
        (b"\x30\x03\x82\x01\xff", None),
        (b"\x30\x03\x81\x01\xff", None),
        (b"\x30\x03\x86\x01\xff", None),
        (b"\x30\x05\x87\x03\x7f\0\0", None),
        (b"\x30\x04\x82\x01a\x82", None),
        (b"\x31\x03\x82\x01a", None),
        (b"a", None),
    ] {
        let read = asked(NAMES, &[names]).ok();
        let counts = read.map(|read| (read.dns_names.len(), read.addresses.len()));
        assert_eq!(counts, expected, "{names:x?}");
    }
    let names = &b"\x30\x03\x82\x01a"[..];
    assert!(asked(NAMES, &[names, names]).is_err(), "a request names an extension once");
    assert!(asked(&[1, 2, 3], &[b"a"]).is_ok(), "an unknown extension is not read");
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
fn signers_accept_only_their_requests() {
    const NODE: (&str, &str, &[&str]) = ("system:nodes", "system:node:a", &[]);
    const SERVER: (&str, &str, &[&str]) = ("system:nodes", "system:node:a", &["a"]);
    check(KUBELET_CLIENT, NODE, CLIENT, None);
    check(KUBELET_CLIENT, NODE, &["client auth", "digital signature", "key encipherment"], None);
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
