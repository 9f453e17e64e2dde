//! Finds the end of a run of plain bytes, the hot path of reading and writing strings.
//!
//! Eight bytes are compared at once, as one number: for each byte of the set, an operation on the
//! number sets the highest bit of those of the eight bytes that are equal to it. If the end is
//! probably far, blocks of sixteen bytes are compared in a vector first.

/// The number of bytes that are compared at once in a number.
const WIDE: usize = size_of::<u64>();
/// The number of bytes that are compared at once in a vector.
const BLOCK: usize = 2 * WIDE;
/// The lowest bit of each byte.
const LOWEST: u64 = u64::MAX / 0xff;
/// The highest bit of each byte.
const HIGHEST: u64 = LOWEST << 7;

/// A set of bytes that always includes the control characters.
pub(super) struct Bytes<const N: usize> {
    others: [Test; N],
}

/// One byte, or two that differ in one bit.
#[derive(Clone, Copy)]
pub(super) struct Test {
    /// The bit in which they differ, or 0.
    differs: u8,
    /// The byte with that bit.
    byte: u8,
}

/// One byte of a set.
pub(super) const fn one(byte: u8) -> Test {
    Test { differs: 0, byte }
}

/// Two bytes of a set that differ in one bit, which are compared like one.
///
/// # Panics
/// If they differ in another number of bits.
pub(super) const fn either(a: u8, b: u8) -> Test {
    assert!((a ^ b).is_power_of_two(), "two bytes are compared at once if they differ in one bit");
    Test { differs: a ^ b, byte: a | b }
}

impl<const N: usize> Bytes<N> {
    pub(super) const fn new(others: [Test; N]) -> Self {
        Self { others }
    }

    /// The number of bytes before the first one in the set, [`WIDE`] if there is none; the first
    /// byte is the lowest of the number.
    #[inline(always)]
    fn position(&self, bytes: u64) -> usize {
        // A subtraction borrows only from bytes after one that is found, so the first found byte is
        // exact.
        let mut found = bytes.wrapping_sub(LOWEST * 0x20) & !bytes;
        for Test { differs, byte } in self.others {
            let (differs, byte) = (LOWEST * u64::from(differs), LOWEST * u64::from(byte));
            let zero_if_equal = (bytes | differs) ^ byte;
            found |= zero_if_equal.wrapping_sub(LOWEST) & !zero_if_equal;
        }
        ((found & HIGHEST).trailing_zeros() / u8::BITS) as usize
    }

    /// Whether a byte of the block is in the set. No branch depends on a byte, so the compiler
    /// compares all bytes of the block in one vector.
    #[inline(always)]
    fn is_in(&self, block: &[u8; BLOCK]) -> bool {
        let contains = |byte: u8| {
            let others = self.others.iter();
            others.fold(byte < 0x20, |is, test| is | (byte | test.differs == test.byte))
        };
        block.iter().fold(false, |is_in, byte| is_in | contains(*byte))
    }
}

/// The number of bytes before the first one in the set; the fastest way if almost all bytes are
/// before it.
#[inline]
pub(super) fn until_far<const N: usize>(bytes: &[u8], set: &Bytes<N>) -> usize {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    if let Some(number) = blocks.iter().position(|block| set.is_in(block)) {
        return number * BLOCK + until(&blocks[number], set);
    }
    match bytes.last_chunk::<BLOCK>() {
        // The last block overlaps those before, which are plain.
        Some(last) if !set.is_in(last) => bytes.len(),
        _ => bytes.len() - rest.len() + until(rest, set),
    }
}

/// The number of bytes before the first one in the set.
#[inline]
pub(super) fn until<const N: usize>(bytes: &[u8], set: &Bytes<N>) -> usize {
    let (chunks, rest) = bytes.as_chunks::<WIDE>();
    for (number, chunk) in chunks.iter().enumerate() {
        let position = set.position(u64::from_le_bytes(*chunk));
        if position < WIDE {
            return number * WIDE + position;
        }
    }
    if rest.is_empty() {
        return bytes.len();
    }
    match bytes.last_chunk::<WIDE>() {
        // The last 8 bytes overlap those before, which are plain.
        Some(last) => bytes.len() - WIDE + set.position(u64::from_le_bytes(*last)),
        // A zero byte is in every set, so the position is at most the number of bytes.
        None => set.position(with_zeros(rest)),
    }
}

/// The number of bytes before the first one that ends a run of plain bytes in a string: a quote, a
/// backslash or a control character.
pub(super) fn until_special(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk::<WIDE>() {
        let found = special(u64::from_le_bytes(*chunk));
        if found != 0 {
            return bytes.len() - rest.len() + (found.trailing_zeros() / u8::BITS) as usize;
        }
        rest = after;
    }
    bytes.len() - rest.len() + special_in_rest(rest)
}

/// Sets the highest bit of the bytes that are special in a string; the first byte is the lowest of
/// the number.
#[inline(always)]
const fn special(bytes: u64) -> u64 {
    // With this bit changed the quote follows the control characters, so one subtraction finds both.
    // As in `Bytes::position`, the first found byte is exact.
    let control_or_quote = (bytes ^ (LOWEST * 0x02)).wrapping_sub(LOWEST * 0x21);
    let backslash = (bytes ^ (LOWEST * b'\\' as u64)).wrapping_sub(LOWEST);
    (control_or_quote | backslash) & !bytes & HIGHEST
}

#[cold]
#[inline(never)]
fn special_in_rest(bytes: &[u8]) -> usize {
    let is_special = |byte: &u8| matches!(byte, ..0x20 | b'"' | b'\\');
    bytes.iter().position(is_special).unwrap_or(bytes.len())
}

/// The number of bytes before the first quote or backslash, which is what ends a part of a valid
/// string. Unlike [`until`] it does not look for control characters.
#[inline]
pub(super) fn until_quote(bytes: &[u8]) -> usize {
    let zero_bytes = |number: u64| number.wrapping_sub(LOWEST) & !number & HIGHEST;
    let (chunks, rest) = bytes.as_chunks::<WIDE>();
    for (number, chunk) in chunks.iter().enumerate() {
        let bytes = u64::from_le_bytes(*chunk);
        let quotes = zero_bytes(bytes ^ (LOWEST * b'"' as u64));
        let found = quotes | zero_bytes(bytes ^ (LOWEST * b'\\' as u64));
        if found != 0 {
            return number * WIDE + (found.trailing_zeros() / u8::BITS) as usize;
        }
    }
    let is_end = |byte: &u8| matches!(byte, b'"' | b'\\');
    bytes.len() - rest.len() + rest.iter().position(is_end).unwrap_or(rest.len())
}

/// Fewer than eight bytes as the lowest bytes of a number. The others are zero.
#[inline(always)]
fn with_zeros(bytes: &[u8]) -> u64 {
    let at = |index: usize, number: u64| number << (u8::BITS as usize * index);
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes) {
        (Some(first), Some(last), _) => {
            let number = |half: &[u8; 4]| u64::from(u32::from_le_bytes(*half));
            number(first) | at(bytes.len() - 4, number(last))
        }
        (.., [first, .., last]) => {
            let middle = bytes.len() / 2;
            u64::from(*first)
                | at(middle, bytes[middle].into())
                | at(bytes.len() - 1, (*last).into())
        }
        (.., [only]) => (*only).into(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_of_the_set_is_found() {
        static SET: Bytes<3> = Bytes::new([one(b'"'), one(b'\\'), one(0xe2)]);
        for length in 0..70 {
            let plain: Vec<u8> = (0..length).map(|i| b'#' + (i % 40) as u8).collect();
            assert_eq!(until(&plain, &SET), length);
            assert_eq!(until_far(&plain, &SET), length);
            for at in 0..length {
                for byte in [b'"', b'\\', 0xe2, 0, 0x1f] {
                    let mut bytes = plain.clone();
                    bytes[at] = byte;
                    assert_eq!(until(&bytes, &SET), at, "{byte} at {at} of {length}");
                    assert_eq!(until_far(&bytes, &SET), at, "{byte} at {at} of {length}");
                    bytes[length - 1] = b'"';
                    assert_eq!(until(&bytes, &SET), at.min(length - 1));
                }
            }
        }
    }

    #[test]
    fn every_byte_is_compared() {
        static SET: Bytes<4> =
            Bytes::new([either(b'"', b'&'), one(b'\\'), either(b'<', b'>'), one(0xe2)]);
        for byte in 0..=u8::MAX {
            let is_in_set = byte < 0x20 || b"\"\\<>&\xe2".contains(&byte);
            let expected = |length| if is_in_set { 0 } else { length };
            for length in [1, 2, 3, 4, 7, 8, 9, 16, 17, 40] {
                assert_eq!(until(&vec![byte; length], &SET), expected(length), "{byte}");
                assert_eq!(until_far(&vec![byte; length], &SET), expected(length), "{byte}");
            }
        }
    }

    #[test]
    fn strings_end_at_the_first_special_byte() {
        for length in 0..40 {
            let plain = vec![b'x'; length];
            assert_eq!(until_special(&plain), length);
            for (at, byte) in (0..length).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte))) {
                let mut bytes = plain.clone();
                bytes[at] = byte;
                let is_special = byte < 0x20 || b"\"\\".contains(&byte);
                let expected = if is_special { at } else { length };
                assert_eq!(until_special(&bytes), expected, "{byte} at {at} of {length}");
                bytes[length - 1] = b'"';
                assert_eq!(until_special(&bytes), expected.min(length - 1));
            }
        }
    }
}
