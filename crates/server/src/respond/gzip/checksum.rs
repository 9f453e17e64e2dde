//! The CRC-32 of bytes whose parts are known by their checksums only.
//!
//! CRC-32 treats bytes as a polynomial over GF(2) and is its remainder. Bytes that follow multiply
//! the polynomial by `x` for each of their bits. So the checksum of two parts needs the checksum
//! of each and `x` to the power of the second one's bits, all modulo the same polynomial.

use flate2::Crc;

/// The polynomial of gzip's CRC-32. As in all remainders here, the highest bit is the coefficient
/// of `x⁰`.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// The remainder 1.
const ONE: u32 = 1 << 31;
/// The remainder of `x⁸`: one byte.
const BYTE: u32 = 1 << 23;

/// The checksum and length of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    /// The CRC-32, as gzip has it.
    pub(super) crc: u32,
    /// The length modulo 2³², as gzip has it.
    pub(super) len: u32,
    /// `x` to the power of the number of bits.
    shift: u32,
}

impl Checksum {
    /// The checksum of no bytes.
    pub(super) const NONE: Self = Self { crc: 0, len: 0, shift: ONE };

    /// The checksum of some bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(bytes);
        Self { crc: crc.sum(), len: crc.amount(), shift: power(BYTE, bytes.len()) }
    }

    /// The checksum of these bytes and of those that follow.
    pub(super) const fn then(self, next: Self) -> Self {
        Self {
            crc: multiply(next.shift, self.crc) ^ next.crc,
            len: self.len.wrapping_add(next.len),
            shift: multiply(self.shift, next.shift),
        }
    }
}

/// The product of two remainders.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let (mut product, mut coefficient) = (0, ONE);
    while coefficient != 0 {
        if a & coefficient != 0 {
            product ^= b;
        }
        // `b` times `x`
        b = if b & 1 == 0 { b >> 1 } else { (b >> 1) ^ POLYNOMIAL };
        coefficient >>= 1;
    }
    product
}

/// A remainder to a power, by repeated squaring.
const fn power(mut base: u32, mut exponent: usize) -> u32 {
    let mut product = ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = multiply(product, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_parts_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|n| (n % 251 * (n % 257) % 256) as u8).collect();
        let whole = Checksum::of(&bytes);
        for at in [0, 1, 7, 255, 256, 4_096, 65_535, 65_536, 69_999, 70_000] {
            let (a, b) = bytes.split_at(at);
            assert_eq!(Checksum::of(a).then(Checksum::of(b)), whole, "cut at {at}");
        }
        let parts = bytes.chunks(999).map(Checksum::of);
        assert_eq!(parts.fold(Checksum::NONE, Checksum::then), whole);
    }

    #[test]
    fn the_checksum_is_that_of_gzip() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(Checksum::of(b"12345").then(Checksum::of(b"6789")).crc, 0xcbf4_3926);
    }
}
