use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, ServerConnection};

use super::*;
use crate::pki::{Pki, Wanted};
use crate::tls::Tls;

fn parse(version: &str, suites: &[&str], curves: &[u16]) -> Result<TlsParameters, String> {
    let parsed = TlsParameters::parse(version, suites.iter().copied(), curves);
    parsed.map_err(|error| error.to_string())
}

/// The TLS version, cipher suite and key exchange that a server with these parameters and a client with this
/// offer negotiate.
fn negotiate(
    server: &TlsParameters,
    offer: CryptoProvider,
    versions: &[&'static SupportedProtocolVersion],
) -> Option<(ProtocolVersion, String, u16)> {
    let pki = Pki::prepare(&Wanted::default(), std::time::SystemTime::now()).unwrap();
    let tls = Tls::new(&pki.listener, server).unwrap();
    let (_, authority) = x509_parser::pem::parse_x509_pem(pki.ca_pem.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.contents.into()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(offer))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut server =
        ServerConnection::new(tls.config(std::net::Ipv4Addr::LOCALHOST.into())).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        client.write_tls(&mut to_server).unwrap();
        server.read_tls(&mut to_server.as_slice()).unwrap();
        server.process_new_packets().ok()?;
        server.write_tls(&mut to_client).unwrap();
        client.read_tls(&mut to_client.as_slice()).unwrap();
        client.process_new_packets().ok()?;
    }
    let suite = server.negotiated_cipher_suite()?.suite().as_str()?.to_owned();
    let group = server.negotiated_key_exchange_group()?.name();
    Some((server.protocol_version()?, suite, group.into()))
}

#[test]
fn tls_flags_restrict_version_suites_and_curves() {
    let all = aws_lc_rs::default_provider;
    let with =
        |version: &str, suites: &[&str], curves: &[u16]| parse(version, suites, curves).unwrap();
    let (new, old) = (&[&version::TLS13], &[&version::TLS12]);
    let version = |server: &TlsParameters, versions: &[&'static SupportedProtocolVersion]| {
        negotiate(server, all(), versions).map(|negotiated| negotiated.0)
    };
    for lax in ["", "VersionTLS10", "VersionTLS12"] {
        assert_eq!(version(&with(lax, &[], &[]), new), Some(ProtocolVersion::TLSv1_3));
        assert_eq!(version(&with(lax, &[], &[]), old), Some(ProtocolVersion::TLSv1_2));
    }
    assert_eq!(version(&with("VersionTLS13", &[], &[]), new), Some(ProtocolVersion::TLSv1_3));
    assert_eq!(version(&with("VersionTLS13", &[], &[]), old), None);
    let suite = |suites: &[&str]| {
        negotiate(&with("", suites, &[]), all(), old).map(|negotiated| negotiated.1)
    };
    let one = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
    assert_eq!(suite(&[one]).as_deref(), Some(one));
    assert_eq!(suite(&["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"]).as_deref(), Some(one));
    assert_eq!(suite(&["TLS_RSA_WITH_AES_128_CBC_SHA"]), None);
    assert_eq!(suite(&["TLS_AES_128_GCM_SHA256"]), None);
    assert_eq!(
        version(&with("", &["TLS_AES_128_GCM_SHA256"], &[]), new),
        Some(ProtocolVersion::TLSv1_3)
    );
    let curve = |curves: &[u16]| {
        negotiate(&with("", &[], curves), all(), new).map(|negotiated| negotiated.2)
    };
    assert_eq!((curve(&[24]), curve(&[25, 29])), (Some(24), Some(29)));
    let mut p256 = all();
    p256.kx_groups.retain(|group| u16::from(group.name()) == 23);
    assert_eq!(negotiate(&with("", &[], &[24]), p256, new), None);
}

#[test]
fn invalid_tls_flags_are_errors_that_name_the_flag() {
    for (version, suites, curves, expected) in [
        ("TLS13", &[][..], &[][..], "--tls-min-version: unknown tls version \"TLS13\""),
        (
            "",
            &["TLS_NONE"],
            &[],
            "--tls-cipher-suites: Cipher suite TLS_NONE not supported or doesn't exist",
        ),
        ("", &[], &[1], "--tls-curve-preferences: unknown key exchange 1"),
        ("", &[], &[25], "--tls-curve-preferences: none of these key exchanges is known here"),
    ] {
        assert_eq!(parse(version, suites, curves), Err(expected.to_owned()));
    }
}
