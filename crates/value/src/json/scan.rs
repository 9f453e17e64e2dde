//! Finds the end of a run of plain bytes, the hot path of reading and writing strings.

/// A set of bytes that always includes the control characters.
pub(super) struct Bytes([bool; 256]);

impl Bytes {
    pub(super) const fn new(others: &[u8]) -> Self {
        let mut set = [false; 256];
        let mut i = 0;
        while i < 0x20 {
            set[i] = true;
            i += 1;
        }
        i = 0;
        while i < others.len() {
            set[others[i] as usize] = true;
            i += 1;
        }
        Self(set)
    }
}

/// The number of bytes before the first one in the set.
#[inline]
pub(super) fn until(bytes: &[u8], set: &Bytes) -> usize {
    bytes.iter().position(|&byte| set.0[usize::from(byte)]).unwrap_or(bytes.len())
}
