//! Compressed fragments that any gzip body can contain, in any order.
//!
//! A fragment refers to no bytes before its own and ends at a byte, so that the fragments of a body
//! need only be copied one behind the other.

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};

use super::LEVEL;
use super::checksum::Checksum;

/// The header of a gzip body without a name and a time, as Go writes it for the fastest level.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff];
/// A last block without bytes.
const END: [u8; 2] = [3, 0];
/// The most bytes of a block that is stored without compression (RFC 1951, 3.2.4).
const STORED_BYTES_MAX: usize = 0xffff;

/// A compressed part of a body.
#[derive(Clone, Debug)]
pub(in crate::respond) struct Fragment {
    deflated: Bytes,
    checksum: Checksum,
}

impl Fragment {
    /// The number of compressed bytes.
    pub(in crate::respond) const fn len(&self) -> usize {
        self.deflated.len()
    }
}

/// Makes fragments. Its state takes some hundred KiB.
pub(in crate::respond) struct Deflater(Compress);

impl Deflater {
    pub(in crate::respond) fn new() -> Self {
        Self(Compress::new(Compression::new(LEVEL), false))
    }

    /// Compresses bytes. `None` if the compressor fails, which it does for no bytes.
    pub(in crate::respond) fn fragment(&mut self, plain: &[u8]) -> Option<Fragment> {
        self.0.reset();
        let mut out = Vec::with_capacity(plain.len() / 4 + 1024);
        // The flush is complete once the compressor leaves room in the vector.
        while self.0.total_in() < plain.len() as u64 || out.len() == out.capacity() {
            out.reserve(out.capacity().max(1024));
            let rest = plain.get(usize::try_from(self.0.total_in()).ok()?..)?;
            match self.0.compress_vec(rest, &mut out, FlushCompress::Sync).ok()? {
                Status::Ok => {}
                Status::BufError | Status::StreamEnd => return None,
            }
        }
        let deflated = out.into_boxed_slice().into();
        Some(Fragment { deflated, checksum: Checksum::of(plain) })
    }
}

/// A gzip body that is put together from fragments.
pub(in crate::respond) struct Chain {
    checksum: Checksum,
    out: Vec<u8>,
}

impl Chain {
    pub(in crate::respond) fn new() -> Self {
        Self { checksum: Checksum::NONE, out: HEADER.to_vec() }
    }

    /// The number of compressed bytes that were not taken yet.
    pub(in crate::respond) const fn len(&self) -> usize {
        self.out.len()
    }

    /// Adds a fragment.
    pub(in crate::respond) fn push(&mut self, fragment: &Fragment) {
        self.out.extend_from_slice(&fragment.deflated);
        self.checksum = self.checksum.then(fragment.checksum);
    }

    /// Adds a few bytes uncompressed.
    pub(in crate::respond) fn store(&mut self, plain: &[u8]) {
        for block in plain.chunks(STORED_BYTES_MAX) {
            let len = block.len() as u16;
            self.out.push(0);
            self.out.extend_from_slice(&len.to_le_bytes());
            self.out.extend_from_slice(&(!len).to_le_bytes());
            self.out.extend_from_slice(block);
        }
        self.checksum = self.checksum.then(Checksum::of(plain));
    }

    /// Takes the compressed bytes so far.
    pub(in crate::respond) fn take(&mut self) -> Bytes {
        // The next piece is about as long as this one.
        let room = Vec::with_capacity(self.out.len());
        std::mem::replace(&mut self.out, room).into()
    }

    /// Ends the body and takes the rest.
    pub(in crate::respond) fn end(&mut self) -> Bytes {
        self.out.extend_from_slice(&END);
        self.out.extend_from_slice(&self.checksum.crc.to_le_bytes());
        self.out.extend_from_slice(&self.checksum.len.to_le_bytes());
        std::mem::take(&mut self.out).into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Bytes that do not compress.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    #[test]
    fn fragments_in_any_order_are_a_body() {
        let parts: [Vec<u8>; 7] = [
            b"{}".to_vec(),
            Vec::new(),
            b"the same words, ".repeat(9_000),
            noise(1_000),
            noise(300_000),
            vec![0; 3 << 20],
            noise(1),
        ];
        let mut deflater = Deflater::new();
        let fragments: Vec<_> = parts.iter().map(|part| deflater.fragment(part).unwrap()).collect();
        for at in [2, 5] {
            assert!(fragments[at].len() < parts[at].len() / 20, "{}", fragments[at].len());
        }
        for order in [vec![0, 1, 2, 3, 4, 5, 6], vec![5, 2, 2, 6, 1], vec![4], vec![]] {
            let (mut chain, mut packed) = (Chain::new(), Vec::new());
            let mut plain = noise(70_000);
            chain.store(&plain);
            for at in order {
                chain.push(&fragments[at]);
                plain.extend_from_slice(&parts[at]);
                packed.extend_from_slice(&chain.take());
            }
            packed.extend_from_slice(&chain.end());
            let (mut decoder, mut read) = (flate2::read::GzDecoder::new(&packed[..]), Vec::new());
            decoder.read_to_end(&mut read).unwrap();
            assert!(read == plain);
            assert!(decoder.into_inner().is_empty(), "bytes behind the body");
        }
    }
}
