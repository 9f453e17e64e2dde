//! Finds the end of a run of plain bytes, the hot path of reading and writing strings.

/// The number of bytes that are compared at once.
const WIDE: usize = 16;
/// The number of bytes that are compared at once in a shorter text.
const NARROW: usize = 8;

/// A set of bytes that always includes the control characters.
pub(super) struct Bytes<const N: usize> {
    others: [u8; N],
    table: [bool; 256],
}

impl<const N: usize> Bytes<N> {
    pub(super) const fn new(others: &[u8; N]) -> Self {
        let mut table = [false; 256];
        let mut i = 0;
        while i < 0x20 {
            table[i] = true;
            i += 1;
        }
        i = 0;
        while i < N {
            table[others[i] as usize] = true;
            i += 1;
        }
        Self { others: *others, table }
    }

    /// True if one of the bytes is in the set. There is no branch, so the compiler compares all of
    /// them with a few vector instructions.
    #[inline(always)]
    fn any<const M: usize>(&self, bytes: &[u8; M]) -> bool {
        let mut found = [0; M];
        for (found, &byte) in found.iter_mut().zip(bytes) {
            *found |= u8::from(byte < 0x20);
        }
        for other in self.others {
            for (found, &byte) in found.iter_mut().zip(bytes) {
                *found |= u8::from(byte == other);
            }
        }
        found.iter().fold(0, |all, found| all | found) != 0
    }

    #[inline]
    fn position(&self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|&byte| self.table[usize::from(byte)])
    }
}

/// The number of bytes before the first one in the set.
#[inline]
pub(super) fn until<const N: usize>(bytes: &[u8], set: &Bytes<N>) -> usize {
    let plain = match bytes.len() {
        WIDE.. => plain_chunks::<WIDE, N>(bytes, set),
        NARROW.. => plain_chunks::<NARROW, N>(bytes, set),
        _ => 0,
    };
    set.position(&bytes[plain..]).map_or(bytes.len(), |more| plain + more)
}

/// A number of leading bytes that are not in the set: all, or as many chunks as have none in it.
#[inline(always)]
fn plain_chunks<const M: usize, const N: usize>(bytes: &[u8], set: &Bytes<N>) -> usize {
    let mut plain = 0;
    let mut rest = bytes;
    while let Some((chunk, behind)) = rest.split_first_chunk::<M>() {
        if set.any(chunk) {
            return plain;
        }
        plain += M;
        rest = behind;
    }
    if rest.is_empty() {
        return plain;
    }
    // The last chunk overlaps the one before.
    match bytes.last_chunk::<M>() {
        Some(last) if !set.any(last) => bytes.len(),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_of_the_set_is_found() {
        static SET: Bytes<3> = Bytes::new(b"\"\\\xe2");
        for length in 0..70 {
            let plain: Vec<u8> = (0..length).map(|i| b'#' + (i % 40) as u8).collect();
            assert_eq!(until(&plain, &SET), length);
            for at in 0..length {
                for byte in [b'"', b'\\', 0xe2, 0, 0x1f] {
                    let mut bytes = plain.clone();
                    bytes[at] = byte;
                    assert_eq!(until(&bytes, &SET), at, "{byte} at {at} of {length}");
                    bytes[length - 1] = b'"';
                    assert_eq!(until(&bytes, &SET), at.min(length - 1));
                }
            }
        }
    }

    #[test]
    fn every_byte_is_compared() {
        static SET: Bytes<6> = Bytes::new(b"\"\\<>&\xe2");
        for byte in 0..=u8::MAX {
            let is_in_set = byte < 0x20 || b"\"\\<>&\xe2".contains(&byte);
            let expected = |length| if is_in_set { 0 } else { length };
            for length in [1, 8, 16, 17, 40] {
                assert_eq!(until(&vec![byte; length], &SET), expected(length), "{byte}");
            }
        }
    }
}
