//! Parses DER one level at a time, for certificates and certificate requests.
//!
//! Incomplete or trailing bytes are an error; nothing is skipped.

use x509_parser::asn1_rs::{Any, Class, FromDer as _, Tag};

/// A value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) class: Class,
    pub(crate) tag: u32,
    pub(crate) is_constructed: bool,
    /// Its content.
    pub(crate) content: &'a [u8],
    /// Its complete encoding.
    pub(crate) raw: &'a [u8],
}

/// An error with the expected kind of value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl<'a> Item<'a> {
    /// Parses bytes that hold exactly one value.
    pub(crate) fn only(bytes: &'a [u8], what: &'static str) -> Result<Self, Malformed> {
        match items(bytes, what)?.as_slice() {
            [item] => Ok(*item),
            _ => Err(Malformed(what)),
        }
    }

    /// The values in a value with this tag: a sequence or a set.
    pub(crate) fn within(&self, tag: Tag, what: &'static str) -> Result<Vec<Self>, Malformed> {
        let is_it = self.is(tag) && self.is_constructed;
        if is_it { items(self.content, what) } else { Err(Malformed(what)) }
    }

    /// Whether it has this universal tag.
    pub(crate) fn is(&self, tag: Tag) -> bool {
        self.class == Class::Universal && self.tag == tag.0
    }

    /// The content of a primitive value with this tag.
    pub(crate) fn primitive(&self, tag: Tag, what: &'static str) -> Result<&'a [u8], Malformed> {
        let is_it = self.is(tag) && !self.is_constructed;
        is_it.then_some(self.content).ok_or(Malformed(what))
    }
}

/// The consecutive values in bytes.
pub(crate) fn items<'a>(
    mut bytes: &'a [u8],
    what: &'static str,
) -> Result<Vec<Item<'a>>, Malformed> {
    let mut items = Vec::new();
    while !bytes.is_empty() {
        let (rest, any) = Any::from_der(bytes).map_err(|_| Malformed(what))?;
        let raw = &bytes[..bytes.len() - rest.len()];
        items.push(Item {
            class: any.header.class(),
            tag: any.header.tag().0,
            is_constructed: any.header.is_constructed(),
            content: any.data,
            raw,
        });
        bytes = rest;
    }
    Ok(items)
}
