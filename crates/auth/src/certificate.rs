//! The user behind a client certificate: the common name is the name, organizations are groups.
//!
//! The chain is verified by the server before; this only reads the leaf.

use sha2::{Digest, Sha256};
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509Certificate, X509Name};

use crate::{Error, User};

/// The attribute of a subject that holds a user's uid.
const UID_OID: &str = "1.3.6.1.4.1.57683.2";
/// The key of [`User::extra`] that names the credential.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Reads a certificate in DER. One without a common name says nothing of its holder, who is then as
/// anonymous as without it.
pub fn holder(der: &[u8]) -> Result<Option<User>, Error> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|error| Error::Certificate(error.to_string()))?;
    let subject = certificate.subject();
    // The last one counts, as in Go.
    let name = subject.iter_common_name().filter_map(|name| name.as_str().ok()).last();
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let groups =
        subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned);
    let fingerprint: String =
        Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect();
    let user = User {
        name: name.to_owned(),
        uid: uid(subject)?,
        groups: groups.collect(),
        extra: vec![(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={fingerprint}")])],
    };
    Ok(Some(user.authenticated()))
}

/// The uid in a subject, `""` where there is none.
fn uid(subject: &X509Name<'_>) -> Result<String, Error> {
    let is_uid =
        |attribute: &&AttributeTypeAndValue<'_>| attribute.attr_type().to_id_string() == UID_OID;
    let uids: Vec<_> = subject.iter_attributes().filter(is_uid).collect();
    let refuse = |why: &str| Err(Error::Certificate(why.to_owned()));
    match uids.as_slice() {
        [] => Ok(String::new()),
        [uid] => match uid.as_str() {
            Ok("") => refuse("UID cannot be an empty string"),
            Ok(uid) => Ok(uid.to_owned()),
            Err(_) => refuse("unable to parse UID into a string"),
        },
        _ => refuse("expected 1 UID, but found multiple"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn certificate(parts: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind.clone(), *value);
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
    fn a_uid_is_one_or_none() {
        let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let refused = holder(&certificate(&[(DnType::CommonName, "jane"), (uid(), "")]));
        assert!(refused.is_err(), "{refused:?}");
    }

    #[test]
    fn what_is_no_certificate_is_an_error() {
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
