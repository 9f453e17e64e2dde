//! Values in DER, one level at a time: what a certificate, or a request for one, is made of.
//!
//! Whatever is not a sequence of whole values is refused; nothing is skipped.

use x509_parser::asn1_rs::{Any, Class, FromDer as _, Tag};

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) class: Class,
    pub(crate) tag: u32,
    pub(crate) is_constructed: bool,
    /// What is within it.
    pub(crate) content: &'a [u8],
    /// It and what is within it, as it stands there.
    pub(crate) raw: &'a [u8],
}

/// Bytes that are not what they should be; says what they should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl<'a> Item<'a> {
    /// The only value that bytes hold.
    pub(crate) fn only(bytes: &'a [u8], what: &'static str) -> Result<Self, Malformed> {
        match items(bytes, what)?.as_slice() {
            [item] => Ok(*item),
            _ => Err(Malformed(what)),
        }
    }

    /// The values within it, which is a sequence, or with another `tag` a set.
    pub(crate) fn within(&self, tag: Tag, what: &'static str) -> Result<Vec<Self>, Malformed> {
        let is_it = self.is(tag) && self.is_constructed;
        if is_it { items(self.content, what) } else { Err(Malformed(what)) }
    }

    /// Whether it is of a type that every standard has.
    pub(crate) fn is(&self, tag: Tag) -> bool {
        self.class == Class::Universal && self.tag == tag.0
    }

    /// What is within it if it is a value of one type and nothing more.
    pub(crate) fn primitive(&self, tag: Tag, what: &'static str) -> Result<&'a [u8], Malformed> {
        let is_it = self.is(tag) && !self.is_constructed;
        is_it.then_some(self.content).ok_or(Malformed(what))
    }
}

/// The values that follow each other in bytes.
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
