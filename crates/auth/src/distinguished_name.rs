//! The name of a certificate's holder, read as Go's `crypto/x509` reads it: the same types of text, and the
//! same of several attributes of one kind.
//!
//! Invariant: an attribute whose text cannot be read is an error, never absent. What is decided about a
//! name would otherwise be decided about less than the name says.

#[cfg(test)]
mod tests;

use x509_parser::asn1_rs::Tag;

use crate::der::{Item, Malformed};

/// A kind of attribute, as the content of its object identifier in DER.
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

/// Attributes in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistinguishedName(Vec<(Vec<u8>, String)>);

impl DistinguishedName {
    /// Reads a name in DER: a sequence of sets of attributes.
    pub(crate) fn read(der: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "a name is a sequence of sets of attributes";
        let mut attributes = Vec::new();
        for set in Item::only(der, WHAT)?.within(Tag::Sequence, WHAT)? {
            for attribute in set.within(Tag::Set, WHAT)? {
                // More may follow the value, in versions to come.
                let parts = attribute.within(Tag::Sequence, WHAT)?;
                let [kind, value, ..] = parts.as_slice() else { return Err(Malformed(WHAT)) };
                attributes.push((kind.primitive(Tag::Oid, WHAT)?.to_vec(), text(value)?));
            }
        }
        Ok(Self(attributes))
    }

    /// A name that consists of these.
    pub fn of<'a>(attributes: impl IntoIterator<Item = (&'a Kind, &'a str)>) -> Self {
        let attributes = attributes.into_iter();
        Self(attributes.map(|(kind, text)| (kind.to_vec(), text.to_owned())).collect())
    }

    /// The texts of all attributes of a kind.
    pub fn all<'a>(&'a self, kind: &Kind) -> impl DoubleEndedIterator<Item = &'a str> {
        let of_kind = self.0.iter().filter(move |(other, _)| other == kind);
        of_kind.map(|(_, text)| text.as_str())
    }

    /// The text of the last attribute of a kind, `""` where there is none: of several names, it counts.
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

/// The text of an attribute, which may be of one of six types.
fn text(value: &Item<'_>) -> Result<String, Malformed> {
    let Some((_, read)) = TYPES.iter().find(|(tag, _)| value.is(*tag) && !value.is_constructed)
    else {
        return Err(Malformed("the type of an attribute's text is not supported"));
    };
    read(value.content).ok_or(Malformed("an attribute's text is not of its type"))
}

/// How the content of a type is read.
type Read = fn(&[u8]) -> Option<String>;

const TYPES: [(Tag, Read); 6] = [
    (Tag::Utf8String, |bytes| Some(str::from_utf8(bytes).ok()?.to_owned())),
    (Tag::PrintableString, |bytes| of(bytes, is_printable)),
    (Tag::Ia5String, |bytes| of(bytes, u8::is_ascii)),
    (Tag::NumericString, |bytes| of(bytes, |byte| byte.is_ascii_digit() || *byte == b' ')),
    // As nearly everybody does, T.61 is taken for ISO 8859-1.
    (Tag::T61String, |bytes| Some(bytes.iter().copied().map(char::from).collect())),
    (Tag::BmpString, two_bytes_each),
];

/// A text of ASCII characters of which each is allowed.
fn of(bytes: &[u8], allows: fn(&u8) -> bool) -> Option<String> {
    let is_allowed = bytes.iter().all(allows);
    is_allowed.then(|| bytes.iter().copied().map(char::from).collect())
}

/// With `*` and `&`, which are not allowed and there nevertheless.
fn is_printable(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(byte)
}

/// A text of two bytes for each character, without surrogates and what is no character.
fn two_bytes_each(bytes: &[u8]) -> Option<String> {
    let (pairs, []) = bytes.as_chunks::<2>() else { return None };
    let pairs = pairs.strip_suffix(&[[0, 0]]).unwrap_or(pairs);
    let point = |pair: &[u8; 2]| match u16::from_be_bytes(*pair) {
        0xfdd0..=0xfdef | 0xfffe..=0xffff => None,
        point => char::from_u32(point.into()),
    };
    pairs.iter().map(point).collect()
}
