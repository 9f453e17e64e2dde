//! The user of a client certificate: the common name is the name, organizations are groups.
//!
//! The server verifies the chain; this module only reads the leaf.

use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::der::Malformed;
use crate::distinguished_name::{DistinguishedName, UID};
use crate::{Error, User};

/// The key of [`User::extra`] with the credential's ID.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Reads a certificate in DER. Returns `None` for a certificate without a common name, which
/// identifies no user: the request is authenticated as if it had no certificate.
pub fn holder(der: &[u8]) -> Result<Option<User>, Error> {
    let certificate = read(der)?;
    let subject = subject(&certificate)?;
    if subject.common_name().is_empty() {
        return Ok(None);
    }
    let fingerprint: String =
        Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect();
    let user = User {
        name: subject.common_name().to_owned(),
        uid: uid(&subject)?,
        groups: subject.organizations().map(str::to_owned).collect(),
        extra: vec![(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={fingerprint}")])],
    };
    Ok(Some(user.authenticated()))
}

/// The common name of a certificate in DER.
pub fn common_name(der: &[u8]) -> Result<String, Error> {
    Ok(subject(&read(der)?)?.common_name().to_owned())
}

fn read(der: &[u8]) -> Result<X509Certificate<'_>, Error> {
    let read = X509Certificate::from_der(der);
    read.map(|(_, certificate)| certificate).map_err(|why| Error::Certificate(why.to_string()))
}

fn subject(certificate: &X509Certificate<'_>) -> Result<DistinguishedName, Error> {
    let read = DistinguishedName::read(certificate.subject().as_raw());
    read.map_err(|Malformed(why)| Error::Certificate(why.to_owned()))
}

/// The uid in a subject; `""` if there is none.
fn uid(subject: &DistinguishedName) -> Result<String, Error> {
    let uids: Vec<_> = subject.all(UID).collect();
    let refuse = |why: &str| Err(Error::Certificate(why.to_owned()));
    match uids.as_slice() {
        [] => Ok(String::new()),
        [""] => refuse("UID cannot be an empty string"),
        [uid] => Ok((*uid).to_owned()),
        _ => refuse("expected 1 UID, but found multiple"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::string::{BmpString, TeletexString, UniversalString};
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    fn certificate<V: Into<DnValue> + Clone>(parts: &[(DnType, V)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn check(parts: &[(DnType, &str)], expected: Option<(&str, &str, &[&str])>) {
        let found = holder(&certificate(parts)).unwrap();
        let found = found.map(|user| (user.name, user.uid, user.groups));
        let expected = expected.map(|(name, uid, groups)| {
            (name.to_owned(), uid.to_owned(), groups.iter().map(|g| (*g).to_owned()).collect())
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn the_subject_names_user_and_groups() {
        use DnType::{CommonName, OrganizationName};
        let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        // AUTHN-01
        check(&[(CommonName, "jane")], Some(("jane", "", &["system:authenticated"])));
        check(
            &[(OrganizationName, "dev"), (CommonName, "jane"), (uid(), "42")],
            Some(("jane", "42", &["dev", "system:authenticated"])),
        );
        check(&[(OrganizationName, "dev")], None);
        check(&[(CommonName, "")], None);
    }

    #[test]
    fn all_string_types_are_read() {
        let name = DnValue::BmpString(BmpString::try_from("Jürgen").unwrap());
        let group = DnValue::TeletexString(TeletexString::try_from("ops").unwrap());
        let parts = [(DnType::CommonName, name), (DnType::OrganizationName, group)];
        let user = holder(&certificate(&parts)).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.groups[0].as_str()), ("Jürgen", "ops"));
        assert_eq!(common_name(&certificate(&parts)).unwrap(), "Jürgen");
    }

    #[test]
    fn a_text_that_cannot_be_read_is_an_error() {
        // Tag 28 is UniversalString.
        let group = DnValue::UniversalString(UniversalString::try_from("ops").unwrap());
        let parts =
            [(DnType::CommonName, DnValue::from("jane")), (DnType::OrganizationName, group)];
        let refused = holder(&certificate(&parts)).unwrap_err().to_string();
        assert!(refused.ends_with("the type of an attribute's text is not supported"), "{refused}");
    }

    #[test]
    fn a_uid_is_one_or_none() {
        let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let refused = holder(&certificate(&[(DnType::CommonName, "jane"), (uid(), "")]));
        assert!(refused.is_err(), "{refused:?}");
    }

    #[test]
    fn an_invalid_certificate_is_an_error() {
        assert!(holder(b"").is_err());
        assert!(holder(&[0x30, 0x82, 0xff, 0xff]).is_err());
    }

    #[test]
    fn the_credential_is_named_by_its_hash() {
        let user = holder(&certificate(&[(DnType::CommonName, "jane")])).unwrap().unwrap();
        let (key, values) = &user.extra[0];
        assert_eq!(key, "authentication.kubernetes.io/credential-id");
        assert!(values[0].starts_with("X509SHA256=") && values[0].len() == 11 + 64);
    }
}
