//! Flags about TLS and serving certificates.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use pintle_meta::names::dns1123_subdomain;
use pintle_server::{NamedServingFiles, TlsParameters};

#[derive(Args, Debug)]
pub(super) struct TlsFlags {
    /// The serving certificate with its intermediate certificates, as PEM [default: a certificate
    /// of the server's own authority]
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// The key of --tls-cert-file, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// A serving certificate and its key, as PEM, for clients that request one of these host names
    /// by SNI (*.example.com matches every host of the domain), or connect to one of these
    /// addresses [default: the names in the certificate]; may be repeated
    #[arg(long, value_name = "CERT,KEY[:NAME,…]", value_parser = named_files)]
    pub(super) tls_sni_cert_key: Vec<NamedServingFiles>,
    /// Additional names and addresses for the certificate that the server generates
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = subject_name)]
    pub(super) tls_san: Vec<String>,
    /// The minimum TLS version: VersionTLS12, VersionTLS13
    #[arg(long, value_name = "VERSION", default_value = "VersionTLS12")]
    tls_min_version: String,
    /// The cipher suites of TLS 1.2, by Go's names. Those of TLS 1.3 are always enabled [default:
    /// all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    tls_cipher_suites: Vec<String>,
    /// The key exchange mechanisms, by the numbers of Go's CurveIDs [default: all]
    #[arg(long, value_name = "NUMBER,…", value_delimiter = ',')]
    tls_curve_preferences: Vec<u16>,
}

impl TlsFlags {
    /// The files of the serving certificate and its key.
    pub(super) fn files(&self) -> Option<(PathBuf, PathBuf)> {
        self.tls_cert_file.clone().zip(self.tls_private_key_file.clone())
    }

    pub(super) fn parameters(&self) -> Result<TlsParameters, pintle_server::Error> {
        TlsParameters::parse(
            &self.tls_min_version,
            self.tls_cipher_suites.iter().map(String::as_str),
            &self.tls_curve_preferences,
        )
    }
}

/// Parses an address or the name of a host, which may stand for all hosts of a domain.
fn subject_name(text: &str) -> Result<String, String> {
    let name = text.to_lowercase();
    let host = name.strip_prefix("*.").unwrap_or(&name);
    if text.parse::<IpAddr>().is_ok() || dns1123_subdomain(host).is_empty() {
        return Ok(name);
    }
    Err("must be an address or the name of a host: 192.0.2.7, pintle.example, *.example".to_owned())
}

/// Upstream: component-base/cli/flag/namedcertkey_flag.go.
fn named_files(value: &str) -> Result<NamedServingFiles, String> {
    let (files, names) = match value.split_once(':') {
        None => (value, Vec::new()),
        Some((_, names)) if names.trim().is_empty() => {
            return Err("empty names list is not allowed".to_owned());
        }
        Some((files, names)) => {
            (files, names.split(',').map(|name| name.trim().to_owned()).collect())
        }
    };
    let split: Vec<&str> = files.split(',').map(str::trim).collect();
    let [certificate, key] = split[..] else {
        return Err("expected comma separated certificate and key file paths".to_owned());
    };
    Ok(NamedServingFiles { certificate: certificate.into(), key: key.into(), names })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream: component-base/cli/flag/namedcertkey_flag_test.go.
    #[test]
    fn pairs_are_read_with_their_names() {
        for (value, expected) in [
            ("foo.crt,foo.key", Ok(("foo.crt", "foo.key", ""))),
            ("  foo.crt , foo.key    ", Ok(("foo.crt", "foo.key", ""))),
            ("foo.crt,foo.key:abc", Ok(("foo.crt", "foo.key", "abc"))),
            ("foo.crt,foo.key: abc  ", Ok(("foo.crt", "foo.key", "abc"))),
            ("foo.crt,foo.key:a, b ,*.c", Ok(("foo.crt", "foo.key", "a b *.c"))),
            ("", Err("expected comma separated certificate and key file paths")),
            ("   ", Err("expected comma separated certificate and key file paths")),
            ("a", Err("expected comma separated certificate and key file paths")),
            ("a:b", Err("expected comma separated certificate and key file paths")),
            ("a,b,c", Err("expected comma separated certificate and key file paths")),
            ("foo.crt,foo.key:", Err("empty names list is not allowed")),
        ] {
            let read = named_files(value).map(|files| {
                let shown = |path: PathBuf| path.to_string_lossy().into_owned();
                (shown(files.certificate), shown(files.key), files.names.join(" "))
            });
            let expected = expected
                .map(|(certificate, key, names)| {
                    (certificate.to_owned(), key.to_owned(), names.to_owned())
                })
                .map_err(str::to_owned);
            assert_eq!(read, expected, "{value:?}");
        }
    }
}
