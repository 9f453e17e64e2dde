//! The parameters of TLS handshakes: `--tls-min-version`, `--tls-cipher-suites`,
//! `--tls-curve-preferences`, with Go's names and numbers.

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{SupportedProtocolVersion, version};

use crate::Error;

/// The offered parameters. By default TLS 1.2 and 1.3, with forward secrecy and authenticated
/// encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsParameters {
    /// Whether only TLS 1.3 is offered.
    only_tls13: bool,
    /// The names of the suites of TLS 1.2 that are offered; `None` for all.
    cipher_suites: Option<Vec<String>>,
    /// The numbers of the key exchanges that are offered; `None` for all.
    curves: Option<Vec<u16>>,
}

/// Go's weak suites, which are never offered.
const WEAK: [&str; 16] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];
/// The suites of TLS 1.3 by Go's names. All of them are always offered, as in Go.
const OF_TLS13: [&str; 3] =
    ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
/// Old names of suites with their present names.
const RENAMED: [(&str, &str); 2] = [
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
];
/// Go's key exchanges: P-256, P-384, P-521, X25519, and those with ML-KEM.
const CURVES: [u16; 7] = [23, 24, 25, 29, 4587, 4588, 4589];

impl TlsParameters {
    /// Parses the flags' values; empty ones select the defaults. Versions before TLS 1.2 are never
    /// offered, so allowing them has no effect.
    pub fn parse<'a>(
        min_version: &str,
        cipher_suites: impl IntoIterator<Item = &'a str>,
        curves: &[u16],
    ) -> Result<Self, Error> {
        let only_tls13 = match min_version {
            "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => false,
            "VersionTLS13" => true,
            other => {
                let reason = format!("unknown tls version {other:?}");
                return Err(Error::Flag { flag: "tls-min-version", reason });
            }
        };
        let parameters = Self {
            only_tls13,
            cipher_suites: suites(cipher_suites)?,
            curves: (!curves.is_empty()).then(|| curves.to_vec()),
        };
        let refuse = |reason: String| Err(Error::Flag { flag: "tls-curve-preferences", reason });
        if let Some(unknown) = curves.iter().find(|curve| !CURVES.contains(curve)) {
            return refuse(format!("unknown key exchange {unknown}"));
        }
        if parameters.provider().kx_groups.is_empty() {
            return refuse("none of these key exchanges is known here".to_owned());
        }
        Ok(parameters)
    }

    /// The offered cipher suites and key exchanges.
    pub(crate) fn provider(&self) -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        if let Some(names) = &self.cipher_suites {
            let is_named = |name: &str| names.iter().any(|named| named == name);
            provider.cipher_suites.retain(|suite| {
                suite.tls13().is_some() || suite.suite().as_str().is_some_and(is_named)
            });
        }
        if let Some(curves) = &self.curves {
            provider.kx_groups.retain(|group| curves.contains(&u16::from(group.name())));
        }
        provider
    }

    /// The offered versions.
    pub(crate) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        static ONLY_TLS13: &[&SupportedProtocolVersion] = &[&version::TLS13];
        if self.only_tls13 { ONLY_TLS13 } else { rustls::ALL_VERSIONS }
    }
}

fn suites<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Option<Vec<String>>, Error> {
    let known = aws_lc_rs::ALL_CIPHER_SUITES;
    let is_known = |name: &str| known.iter().any(|suite| suite.suite().as_str() == Some(name));
    let mut suites = Vec::new();
    for name in names.into_iter().map(str::trim).filter(|name| !name.is_empty()) {
        let renamed = RENAMED.iter().find(|(old, _)| *old == name);
        let name = renamed.map_or(name, |(_, new)| new);
        if !is_known(name) && !WEAK.contains(&name) && !OF_TLS13.contains(&name) {
            let reason = format!("Cipher suite {name} not supported or doesn't exist");
            return Err(Error::Flag { flag: "tls-cipher-suites", reason });
        }
        suites.push(name.to_owned());
    }
    Ok((!suites.is_empty()).then_some(suites))
}

#[cfg(test)]
mod tests;
