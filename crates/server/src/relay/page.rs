//! Rewrites the links in a backend's HTML pages (upstream: `Transport.rewriteResponse`).
//!
//! All other bytes are unchanged.

use std::io::{self, Read, Write};
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::read::{DeflateDecoder, GzDecoder};
use flate2::write::{DeflateEncoder, GzEncoder};
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use http_body_util::BodyExt;

use super::rewriting::Rewriting;
use crate::backends;
use crate::header_text;

/// A larger page, compressed or not, is relayed unchanged.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// The attributes that are links, by element (upstream: `atomsToAttrs`).
const LINKS: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// The compression of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Gzip,
    Deflate,
}

impl Encoding {
    /// The compression of an HTML page; `None` for another type or an unknown compression.
    pub(crate) fn of_page(headers: &HeaderMap) -> Option<Self> {
        let text = |name| headers.get(name).map(header_text::text).unwrap_or_default();
        if text(&CONTENT_TYPE).split(';').next().map(str::trim) != Some("text/html") {
            return None;
        }
        match &*text(&CONTENT_ENCODING) {
            "" => Some(Self::Plain),
            "gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }

    fn decode(self, page: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        let bound = PAGE_BYTES_MAX as u64 + 1;
        match self {
            Self::Plain => plain.extend_from_slice(page),
            Self::Gzip => drop(GzDecoder::new(page).take(bound).read_to_end(&mut plain)?),
            Self::Deflate => drop(DeflateDecoder::new(page).take(bound).read_to_end(&mut plain)?),
        }
        Ok(plain)
    }

    fn encode(self, plain: Vec<u8>) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(plain),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&plain)?;
                encoder.finish()
            }
            Self::Deflate => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&plain)?;
                encoder.finish()
            }
        }
    }
}

/// The part of a body that has been read.
pub(crate) struct Beginning {
    pub(crate) bytes: Bytes,
    /// Whether it is the whole body.
    pub(crate) is_all: bool,
}

/// Reads a body to its end, or until it has more than [`PAGE_BYTES_MAX`].
pub(crate) async fn beginning(
    body: &mut backends::ResponseBody,
) -> Result<Beginning, hyper::Error> {
    let mut bytes = BytesMut::new();
    while bytes.len() <= PAGE_BYTES_MAX {
        let Some(frame) = body.frame().await else {
            return Ok(Beginning { bytes: bytes.freeze(), is_all: true });
        };
        bytes.extend_from_slice(frame?.data_ref().map_or(&[], |data| data));
    }
    Ok(Beginning { bytes: bytes.freeze(), is_all: false })
}

/// Rewrites the links of a page and compresses it as before. A page that is too large without its
/// compression is returned unchanged.
pub(crate) fn rewritten(
    page: &Bytes,
    encoding: Encoding,
    rewriting: &Rewriting,
) -> io::Result<Bytes> {
    let plain = encoding.decode(page)?;
    if plain.len() > PAGE_BYTES_MAX {
        return Ok(page.clone());
    }
    Ok(encoding.encode(with_links(&plain, rewriting))?.into())
}

fn with_links(page: &[u8], rewriting: &Rewriting) -> Vec<u8> {
    let mut out = Vec::with_capacity(page.len());
    let mut end = 0;
    for (range, link) in links(page, rewriting) {
        // Ranges are sorted and do not overlap.
        if let Some(between) = page.get(end..range.start) {
            out.extend_from_slice(between);
            out.extend_from_slice(link.as_bytes());
            end = range.end;
        }
    }
    out.extend_from_slice(page.get(end..).unwrap_or_default());
    out
}

/// The ranges of links that must change, with their replacements.
fn links(page: &[u8], rewriting: &Rewriting) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut attributes: &[&str] = &[];
    let mut is_link = false;
    let visit = |event: CallbackEvent<'_>, span: Span<usize>| -> Option<()> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                let element = LINKS.iter().find(|(element, _)| element.as_bytes() == name);
                attributes = element.map_or(&[], |(_, attributes)| attributes);
            }
            CallbackEvent::AttributeName { name } => {
                is_link = attributes.iter().any(|known| known.as_bytes() == name);
            }
            CallbackEvent::AttributeValue { value } if is_link => {
                let link = std::str::from_utf8(value).ok();
                let link = link.and_then(|link| rewriting.rewritten(link).ok().flatten());
                found.extend(link.map(|link| (span.start..span.end, escape(&link))));
            }
            CallbackEvent::EndTag { .. } => attributes = &[],
            _ => {}
        }
        None
    };
    let mut emitter = CallbackEmitter::new(visit);
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(page, emitter) {
        match token {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }
    found
}

/// Escapes a link as an attribute's value, quoted or not.
fn escape(link: &str) -> String {
    let mut out = String::with_capacity(link.len());
    for c in link.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(
        "<!DOCTYPE html>\r\n<HEAD><base href='/b/'><link rel=x href=/style.css>",
        "<script src=\"/s.js\">var a='<a href=\"/no\">';</script><!-- <a href=\"/no\"> -->",
        "<A class=x HREF=\"/x?y=1&amp;z='2'#f\">&lt;</A><a href=\"rel\">r</a><a href=\"%zz\">b</a>",
        "<img src=\"//10.0.0.1/i.png\"/><p data-x=\"/no\" src=/no><form action = /f >",
        "<textarea><a href=/no></textarea></a href=/no><a href=\"/cut"
    );
    const EXPECTED: &str = concat!(
        "<!DOCTYPE html>\r\n<HEAD><base href='/p/b/'><link rel=x href=/p/style.css>",
        "<script src=\"/p/s.js\">var a='<a href=\"/no\">';</script><!-- <a href=\"/no\"> -->",
        "<A class=x HREF=\"/p/x?y=1&amp;z=&#39;2&#39;#f\">&lt;</A><a href=\"rel\">r</a><a href=\"%zz\">b</a>",
        "<img src=\"/p/i.png\"/><p data-x=\"/no\" src=/no><form action = /p/f >",
        "<textarea><a href=/no></textarea></a href=/no><a href=\"/cut"
    );

    fn rewriting() -> Rewriting {
        Rewriting::new("/p/a", "/a", "10.0.0.1".to_owned(), "here".to_owned())
    }

    #[test]
    fn only_links_are_rewritten() {
        for encoding in [Encoding::Plain, Encoding::Gzip, Encoding::Deflate] {
            let page = encoding.encode(PAGE.into()).unwrap().into();
            let page = rewritten(&page, encoding, &rewriting()).unwrap();
            let page = String::from_utf8(encoding.decode(&page).unwrap()).unwrap();
            assert_eq!(page, EXPECTED, "{encoding:?}");
        }
    }

    #[test]
    fn a_page_that_grows_too_large_is_unchanged() {
        let page = Encoding::Gzip.encode(vec![b' '; PAGE_BYTES_MAX + 1]).unwrap().into();
        assert_eq!(rewritten(&page, Encoding::Gzip, &rewriting()).unwrap(), page);
        assert!(rewritten(&Bytes::from("no"), Encoding::Gzip, &rewriting()).is_err());
    }

    #[test]
    fn rewriting_accepts_any_bytes() {
        const SIGNS: &[u8] = b"<a href='/\"x>!-\r\n\0\xff&;";
        let mut state = 1_u64;
        for _ in 0..2_000 {
            let page: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                SIGNS[(state >> 33) as usize % SIGNS.len()]
            })
            .take(200)
            .collect();
            let made = links(&page, &rewriting());
            assert!(made.is_sorted_by_key(|(range, _)| range.start), "{page:?}");
            assert!(made.iter().all(|(range, _)| range.end <= page.len()), "{page:?}");
            let page = with_links(&page, &rewriting());
            assert!(made.is_empty() || page.windows(3).any(|part| part == b"/p/"), "{page:?}");
        }
    }
}
