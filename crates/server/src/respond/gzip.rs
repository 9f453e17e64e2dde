//! Compresses long responses piece by piece, or from fragments that were compressed before.

mod checksum;
mod fragment;

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

pub(super) use fragment::{Chain, Deflater, Fragment};

use crate::body::{CHUNK_BYTES, Pieces};
use crate::header_text;

/// Upstream's level: most of the compression for a small part of the work.
const LEVEL: u32 = 1;

/// A compressed piece is sent once it has this size.
pub(super) const PIECE_BYTES: usize = CHUNK_BYTES / 2;

/// True if the client accepts gzip.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    header_text::list(headers, &ACCEPT_ENCODING).split(',').any(|coding| {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = parameters
            .trim()
            .strip_prefix("q=")
            .is_some_and(|q| q.trim().parse::<f32>().is_ok_and(|quality| quality <= 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// Compresses pieces; each compressed piece but the last has at least [`PIECE_BYTES`].
pub(super) fn compress(pieces: Box<dyn Pieces>) -> Box<dyn Pieces> {
    Box::new(Compressed { pieces, encoder: Some(encoder()) })
}

struct Compressed {
    pieces: Box<dyn Pieces>,
    /// `None` when everything has been sent.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

fn encoder() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Compression::new(LEVEL))
}

impl Pieces for Compressed {
    fn takes_work(&mut self) -> bool {
        self.encoder.is_some()
    }

    fn next(&mut self) -> Option<Bytes> {
        loop {
            let encoder = self.encoder.as_mut()?;
            match self.pieces.next() {
                // Writing to a vector cannot fail.
                Some(piece) => encoder.write_all(&piece).ok()?,
                None => return self.encoder.take()?.finish().ok().map(Bytes::from),
            }
            if encoder.get_ref().len() >= PIECE_BYTES {
                return Some(std::mem::take(encoder.get_mut()).into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::body::Ready;
    use http::HeaderValue;

    #[test]
    fn compression_round_trips() {
        let parts: Vec<Bytes> =
            (0..50_u32).map(|n| n.to_string().repeat(9_000).into_bytes().into()).collect();
        let plain: Vec<u8> = parts.iter().flatten().copied().collect();
        let mut pieces = compress(Box::new(Ready(parts.into_iter())));
        let packed: Vec<u8> = std::iter::from_fn(|| pieces.next()).flatten().collect();
        assert!(packed.len() < plain.len() / 10);
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut read).unwrap();
        assert_eq!(read, plain);
    }

    #[test]
    fn accept_encoding_decides() {
        for (header, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(header));
            assert_eq!(is_accepted(&headers), expected, "{header}");
        }
    }
}
