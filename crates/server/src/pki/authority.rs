//! The server's CAs and the certificates that they issue.

use std::fmt::Display;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::validity::{Validity, date, seconds};
use super::{Credentials, files, pem};
use crate::Error;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const AUTHORITY_LIFE: Duration = DAY.saturating_mul(3650);
const LEAF_LIFE: Duration = DAY.saturating_mul(365);
/// A certificate is renewed this long before it expires.
const RENEWAL: Duration = DAY.saturating_mul(30);
/// The server begins to warn of a CA's expiry this long before it, so that its users can get a new
/// CA in time.
const AUTHORITY_WARNING: Duration = DAY.saturating_mul(180);
/// Certificates are backdated by this, since clocks differ.
const BACKDATED: Duration = Duration::from_secs(60 * 60);

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(super) certificate_pem: String,
    pub(super) key_pem: String,
    certificate_path: PathBuf,
    key_path: PathBuf,
}

/// A CA of the server.
pub(super) struct Kind {
    /// The files' name, without `.crt` and `.key`.
    file: &'static str,
    common_name: &'static str,
}

impl Kind {
    /// The files' name, without `.crt` and `.key`.
    pub(super) const fn file(&self) -> &'static str {
        self.file
    }
}

/// The CA of the serving certificate and of client certificates.
pub(super) const CLUSTER: Kind = Kind { file: "ca", common_name: "kubernetes" };
/// The CA of the server's certificate as a front proxy.
pub(super) const FRONT_PROXY: Kind = Kind { file: "front-proxy-ca", common_name: "front-proxy-ca" };

/// The contents of a certificate.
pub(crate) struct Profile {
    /// The files' name, without `.crt` and `.key`.
    pub(super) file: &'static str,
    pub(super) common_name: &'static str,
    /// A group, or `""`.
    pub(super) organization: &'static str,
    pub(super) dns_names: Vec<String>,
    pub(super) addresses: Vec<IpAddr>,
}

impl Pair {
    /// Reads a certificate and its key; `flags` name the two files.
    ///
    /// # Errors
    /// A file cannot be read or parsed, or the key is not that of the certificate.
    pub(super) fn read(
        certificate_path: &Path,
        key_path: &Path,
        flags: [&'static str; 2],
    ) -> Result<Self, Error> {
        let of_certificate = |error: Error| error.of(flags[0]);
        let of_key = |error: Error| error.of(flags[1]);
        let pair = Self {
            certificate_pem: files::read(certificate_path).map_err(of_certificate)?,
            key_pem: files::read(key_path).map_err(of_key)?,
            certificate_path: certificate_path.to_owned(),
            key_path: key_path.to_owned(),
        };
        pair.chain().map_err(of_certificate)?;
        pair.key().map_err(of_key)?;
        if pair.belongs_together() { Ok(pair) } else { Err(of_key(pair.mismatch())) }
    }

    /// The certificate chain.
    pub(crate) fn chain(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        pem::certificates(&self.certificate_path, &self.certificate_pem)
    }

    /// The key.
    pub(crate) fn key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        pem::key(&self.key_path, &self.key_pem)
    }

    /// The pair as credentials of a client.
    pub(super) fn credentials(&self) -> Credentials {
        Credentials { certificate_pem: self.certificate_pem.clone(), key_pem: self.key_pem.clone() }
    }

    /// Whether the key is the certificate's. After a crash, key and certificate may be of two
    /// generations.
    fn belongs_together(&self) -> bool {
        let (Ok(chain), Ok(key)) = (self.chain(), self.key()) else { return false };
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key);
        key.is_ok_and(|key| CertifiedKey::new(chain, key).keys_match().is_ok())
    }

    /// The error of a key that is not the certificate's.
    pub(crate) fn mismatch(&self) -> Error {
        let certificate = self.certificate_path.display();
        let reason = format!("this key is not that of the certificate in {certificate}");
        pem::error(&self.key_path, reason)
    }

    /// The paths of a pair; without a directory, only file names.
    fn paths(directory: Option<&Path>, name: &str) -> (PathBuf, PathBuf) {
        let directory = directory.unwrap_or(Path::new(""));
        (directory.join(format!("{name}.crt")), directory.join(format!("{name}.key")))
    }

    /// The path of the certificate.
    pub(super) fn certificate_path(&self) -> PathBuf {
        self.certificate_path.clone()
    }

    /// Loads a stored pair, if there is one.
    pub(super) fn load(directory: Option<&Path>, name: &str) -> Result<Option<Self>, Error> {
        let (certificate_path, key_path) = Self::paths(directory, name);
        if directory.is_none() {
            return Ok(None);
        }
        let certificate_pem = files::read_if_any(&certificate_path)?;
        let key_pem = files::read_if_any(&key_path)?;
        Ok(certificate_pem.zip(key_pem).map(|(certificate_pem, key_pem)| Self {
            certificate_pem,
            key_pem,
            certificate_path,
            key_path,
        }))
    }

    /// Stores a new pair, if there is a directory.
    fn save(
        directory: Option<&Path>,
        name: &str,
        certificate_pem: String,
        key_pem: String,
    ) -> Result<Self, Error> {
        let (certificate_path, key_path) = Self::paths(directory, name);
        if directory.is_some() {
            files::write_private(&key_path, &key_pem)?;
            files::write_private(&certificate_path, &certificate_pem)?;
        }
        Ok(Self { certificate_pem, key_pem, certificate_path, key_path })
    }
}

/// A CA that signs certificates of this server.
pub(crate) struct Authority {
    pair: Pair,
    issuer: Issuer<'static, KeyPair>,
    validity: Validity,
}

impl Authority {
    /// Loads the stored CA, or generates one.
    ///
    /// # Errors
    /// Also if the stored CA is not valid now: clients would reject its certificates, and a new CA
    /// in its place would lock out everyone who trusts the stored one.
    pub(super) fn prepare(
        kind: &Kind,
        directory: Option<&Path>,
        now: SystemTime,
    ) -> Result<Self, Error> {
        let stored = directory.map(|directory| Self::stored(kind, directory, now)).transpose()?;
        match stored.flatten() {
            Some(stored) => Ok(stored),
            None => Self::of(kind, Self::make(kind, directory, now)?, now),
        }
    }

    /// Loads the stored CA, if there is one.
    ///
    /// # Errors
    /// Also if half of it is missing: a new CA would lock out everyone who trusts the old one.
    pub(super) fn stored(
        kind: &Kind,
        directory: &Path,
        now: SystemTime,
    ) -> Result<Option<Self>, Error> {
        let file = kind.file;
        if let Some(pair) = Pair::load(Some(directory), file)? {
            return Self::of(kind, pair, now).map(Some);
        }
        let (certificate_path, key_path) = Pair::paths(Some(directory), file);
        if certificate_path.exists() || key_path.exists() {
            let reason = format!(
                "{file}.crt and {file}.key belong together and one is missing; put it back, or remove \
                 the other to get a new authority"
            );
            return Err(pem::error(&certificate_path, reason));
        }
        Ok(None)
    }

    /// Checks a pair, and makes a CA of it.
    fn of(kind: &Kind, pair: Pair, now: SystemTime) -> Result<Self, Error> {
        let file = kind.file;
        let advice = format!(
            "put back the right file, or remove {file}.crt and {file}.key to get a new authority, which all \
             clients must then be given"
        );
        let wrong = |path: &Path, why: &dyn Display| pem::error(path, format!("{why}; {advice}"));
        let (certificate_path, key_path) = (&pair.certificate_path, &pair.key_path);
        let unread = || wrong(certificate_path, &"this is not a CA certificate in PEM");
        let chain = pair.chain().map_err(|_| unread())?;
        let validity = chain.first().and_then(Validity::of).ok_or_else(unread)?;
        let key = KeyPair::from_pem(&pair.key_pem)
            .map_err(|_| wrong(key_path, &"this is not a private key in PEM"))?;
        if !pair.belongs_together() {
            let why = format!("this key is not that of the CA in {}", certificate_path.display());
            return Err(wrong(key_path, &why));
        }
        let issuer = Issuer::from_ca_cert_pem(&pair.certificate_pem, key)
            .map_err(|why| wrong(certificate_path, &why))?;
        if let Some(problem) = validity.problem(seconds(now)) {
            let reason = format!(
                "this authority cannot be used: {problem}; set the clock, or remove {file}.crt and \
                 {file}.key to get a new authority, which all clients must then be given"
            );
            return Err(pem::error(&pair.certificate_path, reason));
        }
        Ok(Self { pair, issuer, validity })
    }

    /// Warns if the CA expires soon.
    pub(crate) fn warn(&self, now: SystemTime) {
        if let Some(why) = self.ends_soon(now) {
            tracing::warn!("{}: {why}", self.pair.certificate_path.display());
        }
    }

    /// Returns a text with the CA's expiry and the action that it requires, if the CA expires soon.
    pub(super) fn ends_soon(&self, now: SystemTime) -> Option<String> {
        let is_soon = seconds(now + AUTHORITY_WARNING) > self.validity.until;
        let until = date(self.validity.until);
        let key_path = self.pair.key_path.display();
        is_soon.then(|| {
            format!(
                "this CA expires at {until}, and with it all its certificates; before then, remove it and \
                 {key_path}, start the server again, and give the new CA to all clients"
            )
        })
    }

    fn make(kind: &Kind, directory: Option<&Path>, now: SystemTime) -> Result<Pair, Error> {
        let mut params = params(kind.common_name, "", now, now + AUTHORITY_LIFE);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let key = KeyPair::generate().map_err(not_made)?;
        let certificate = params.self_signed(&key).map_err(not_made)?;
        Pair::save(directory, kind.file, certificate.pem(), key.serialize_pem())
    }

    /// The CA certificate, as PEM.
    pub(super) fn certificate_pem(&self) -> &str {
        &self.pair.certificate_pem
    }

    /// The CA key, as PEM.
    pub(super) fn key_pem(&self) -> &str {
        &self.pair.key_pem
    }

    /// The CA certificate.
    pub(super) fn certificate_der(&self) -> Result<CertificateDer<'static>, Error> {
        Ok(self.pair.chain()?.swap_remove(0))
    }

    /// The stored pair of a profile, if it is still usable, or a new one.
    pub(super) fn pair(
        &self,
        directory: Option<&Path>,
        profile: &Profile,
        now: SystemTime,
    ) -> Result<Pair, Error> {
        match Pair::load(directory, profile.file)? {
            Some(pair) => Ok(self.renewed(&pair, directory, profile, now)?.unwrap_or(pair)),
            None => self.make_pair(directory, profile, now),
        }
    }

    /// Renews a pair that is no longer usable.
    pub(crate) fn renewed(
        &self,
        pair: &Pair,
        directory: Option<&Path>,
        profile: &Profile,
        now: SystemTime,
    ) -> Result<Option<Pair>, Error> {
        let Some(why) = self.unfit(pair, profile, now) else { return Ok(None) };
        tracing::info!("renewing the certificate {}: {why}", profile.file);
        self.make_pair(directory, profile, now).map(Some)
    }

    /// Issues a new pair, which does not outlive the CA.
    fn make_pair(
        &self,
        directory: Option<&Path>,
        profile: &Profile,
        now: SystemTime,
    ) -> Result<Pair, Error> {
        let authority_ends = u64::try_from(self.validity.until).unwrap_or_default();
        let end = (now + LEAF_LIFE).min(UNIX_EPOCH + Duration::from_secs(authority_ends));
        let mut params = params(profile.common_name, profile.organization, now, end);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Python from 3.13 on accepts no certificate without it.
        params.use_authority_key_identifier_extension = true;
        let names = profile.dns_names.iter().filter_map(|name| name.as_str().try_into().ok());
        let addresses = profile.addresses.iter().copied().map(SanType::IpAddress);
        params.subject_alt_names = names.map(SanType::DnsName).chain(addresses).collect();
        params.extended_key_usages = vec![if params.subject_alt_names.is_empty() {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        let key = KeyPair::generate().map_err(not_made)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(not_made)?;
        let key_pem = pem::elliptic(&key).unwrap_or_else(|| key.serialize_pem());
        Pair::save(directory, profile.file, certificate.pem(), key_pem)
    }

    /// Returns the reason why a pair must be renewed, if there is one: it cannot be read, its key
    /// is that of another certificate, it is of another CA or does not name the CA's key, it expires
    /// soon or after the CA, or it lacks a name or an address of the profile.
    pub(super) fn unfit(&self, pair: &Pair, profile: &Profile, now: SystemTime) -> Option<String> {
        let (chain, authority) = match (pair.chain(), self.certificate_der()) {
            (Ok(chain), Ok(authority)) => (chain, authority),
            (Err(why), _) | (_, Err(why)) => return Some(why.to_string()),
        };
        if let Err(why) = pair.key() {
            return Some(why.to_string());
        }
        if !pair.belongs_together() {
            return Some("its key is another's".to_owned());
        }
        let parsed = (X509Certificate::from_der(&chain[0]), X509Certificate::from_der(&authority));
        let ((Ok((_, certificate)), Ok((_, authority))), Some(validity)) =
            (parsed, Validity::of(&chain[0]))
        else {
            return Some("it cannot be read".to_owned());
        };
        if let Some(problem) = validity.problem(seconds(now)) {
            return Some(problem);
        }
        if validity.until > self.validity.until {
            return Some("it outlives its authority".to_owned());
        }
        // A certificate that expires with its CA is not renewed early, because a new one would not
        // last longer.
        if validity.until < seconds(now + RENEWAL).min(self.validity.until) {
            return Some(format!("it ends at {}", date(validity.until)));
        }
        if certificate.verify_signature(Some(authority.public_key())).is_err() {
            return Some("it is another authority's".to_owned());
        }
        if !names_authority(&certificate) {
            return Some("it does not name its authority's key".to_owned());
        }
        let names: Vec<GeneralName<'_>> = match certificate.subject_alternative_name() {
            Ok(Some(extension)) => extension.value.general_names.clone(),
            _ => Vec::new(),
        };
        let names_missing =
            profile.dns_names.iter().filter(|name| !names.contains(&GeneralName::DNSName(name)));
        let addresses = profile.addresses.iter();
        let addresses_missing = addresses.filter(|address| !has_address(&names, **address));
        let missing: Vec<String> =
            names_missing.cloned().chain(addresses_missing.map(ToString::to_string)).collect();
        (!missing.is_empty()).then(|| format!("it does not name {}", missing.join(", ")))
    }
}

/// Whether a certificate has an `authorityKeyIdentifier`.
fn names_authority(certificate: &X509Certificate<'_>) -> bool {
    let mut extensions = certificate.extensions().iter();
    extensions
        .any(|one| matches!(one.parsed_extension(), ParsedExtension::AuthorityKeyIdentifier(_)))
}

fn has_address(names: &[GeneralName<'_>], address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => names.contains(&GeneralName::IPAddress(&v4.octets())),
        IpAddr::V6(v6) => names.contains(&GeneralName::IPAddress(&v6.octets())),
    }
}

fn params(
    common_name: &str,
    organization: &str,
    now: SystemTime,
    end: SystemTime,
) -> CertificateParams {
    let mut name = DistinguishedName::new();
    if !organization.is_empty() {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    params.not_before = (now - BACKDATED).into();
    params.not_after = end.into();
    params
}

fn not_made(why: rcgen::Error) -> Error {
    Error::MakeCertificate(why.to_string())
}
