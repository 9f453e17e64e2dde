//! The subject of a certificate, parsed as Go's `crypto/x509` does: with the same string types and
//! the same choice among several attributes of a type.
//!
//! Invariant: an attribute whose text cannot be decoded is an error, never absent. Otherwise
//! decisions would be based on a part of the name.

#[cfg(test)]
mod tests;

use x509_parser::asn1_rs::Tag;

use crate::der::{Item, Malformed};

/// An attribute type, as the content of its object identifier in DER.
pub type Kind = [u8];

/// `CN`, 2.5.4.3: the name of a user.
pub const COMMON_NAME: &Kind = &[0x55, 4, 3];
/// `serialNumber`, 2.5.4.5.
pub const SERIAL_NUMBER: &Kind = &[0x55, 4, 5];
/// `C`, 2.5.4.6.
pub const COUNTRY: &Kind = &[0x55, 4, 6];
/// `L`, 2.5.4.7.
pub const LOCALITY: &Kind = &[0x55, 4, 7];
/// `ST`, 2.5.4.8.
pub const PROVINCE: &Kind = &[0x55, 4, 8];
/// `street`, 2.5.4.9.
pub const STREET: &Kind = &[0x55, 4, 9];
/// `O`, 2.5.4.10: a group of users.
pub const ORGANIZATION: &Kind = &[0x55, 4, 10];
/// `OU`, 2.5.4.11.
pub const ORGANIZATIONAL_UNIT: &Kind = &[0x55, 4, 11];
/// `postalCode`, 2.5.4.17.
pub const POSTAL_CODE: &Kind = &[0x55, 4, 17];
/// 1.3.6.1.4.1.57683.2: the uid of a user.
pub(crate) const UID: &Kind = &[0x2b, 6, 1, 4, 1, 0x83, 0xc2, 0x53, 2];

/// The attributes in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistinguishedName(Vec<(Vec<u8>, String)>);

impl DistinguishedName {
    /// Parses a name in DER: a sequence of sets of attributes.
    pub(crate) fn read(der: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "a name is a sequence of sets of attributes";
        let mut attributes = Vec::new();
        for set in Item::only(der, WHAT)?.within(Tag::Sequence, WHAT)? {
            for attribute in set.within(Tag::Set, WHAT)? {
                // Later versions may append values.
                let parts = attribute.within(Tag::Sequence, WHAT)?;
                let [kind, value, ..] = parts.as_slice() else { return Err(Malformed(WHAT)) };
                attributes.push((kind.primitive(Tag::Oid, WHAT)?.to_vec(), text(value)?));
            }
        }
        Ok(Self(attributes))
    }

    /// A name of these attributes.
    pub fn of<'a>(attributes: impl IntoIterator<Item = (&'a Kind, &'a str)>) -> Self {
        let attributes = attributes.into_iter();
        Self(attributes.map(|(kind, text)| (kind.to_vec(), text.to_owned())).collect())
    }

    /// The texts of all attributes of a type.
    pub fn all<'a>(&'a self, kind: &Kind) -> impl DoubleEndedIterator<Item = &'a str> {
        let of_kind = self.0.iter().filter(move |(other, _)| other == kind);
        of_kind.map(|(_, text)| text.as_str())
    }

    /// The text of the last attribute of a type, which wins if there are several; `""` if there is
    /// none.
    pub fn last(&self, kind: &Kind) -> &str {
        self.all(kind).next_back().unwrap_or_default()
    }

    /// `CN`.
    pub fn common_name(&self) -> &str {
        self.last(COMMON_NAME)
    }

    /// Every `O`.
    pub fn organizations(&self) -> impl Iterator<Item = &str> {
        self.all(ORGANIZATION)
    }
}

/// Decodes the text of an attribute, which may have one of six string types.
fn text(value: &Item<'_>) -> Result<String, Malformed> {
    let Some((_, read)) = TYPES.iter().find(|(tag, _)| value.is(*tag) && !value.is_constructed)
    else {
        return Err(Malformed("the type of an attribute's text is not supported"));
    };
    read(value.content).ok_or(Malformed("an attribute's text is not of its type"))
}

/// The decoder of a string type.
type Read = fn(&[u8]) -> Option<String>;

const TYPES: [(Tag, Read); 6] = [
    (Tag::Utf8String, |bytes| Some(str::from_utf8(bytes).ok()?.to_owned())),
    (Tag::PrintableString, |bytes| of(bytes, is_printable)),
    (Tag::Ia5String, |bytes| of(bytes, u8::is_ascii)),
    (Tag::NumericString, |bytes| of(bytes, |byte| byte.is_ascii_digit() || *byte == b' ')),
    // T.61 is decoded as ISO 8859-1, as nearly all implementations do.
    (Tag::T61String, |bytes| Some(bytes.iter().copied().map(char::from).collect())),
    (Tag::BmpString, two_bytes_each),
];

/// An ASCII text of allowed characters.
fn of(bytes: &[u8], allows: fn(&u8) -> bool) -> Option<String> {
    let is_allowed = bytes.iter().all(allows);
    is_allowed.then(|| bytes.iter().copied().map(char::from).collect())
}

/// Includes `*` and `&`, which are invalid and nevertheless in use.
fn is_printable(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(byte)
}

/// Decodes two bytes for each character and drops a final NUL; `None` if there is a surrogate, a
/// noncharacter or an odd byte.
fn two_bytes_each(bytes: &[u8]) -> Option<String> {
    let (pairs, []) = bytes.as_chunks::<2>() else { return None };
    let pairs = pairs.strip_suffix(&[[0, 0]]).unwrap_or(pairs);
    let point = |pair: &[u8; 2]| match u16::from_be_bytes(*pair) {
        0xfdd0..=0xfdef | 0xfffe..=0xffff => None,
        point => char::from_u32(point.into()),
    };
    pairs.iter().map(point).collect()
}
