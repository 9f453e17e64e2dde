//! Encodes DER values of certificates.

/// The tag of a sequence.
pub(crate) const SEQUENCE: u8 = 0x30;

/// Encodes a tag, a length and a value.
pub(crate) fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len().to_be_bytes();
    let significant = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut out = vec![tag];
    match (significant, u8::try_from(significant.len())) {
        ([], _) => out.push(0),
        ([short @ 0..0x80], _) => out.push(*short),
        (_, Ok(count)) => {
            out.push(0x80 | count);
            out.extend_from_slice(significant);
        }
        (_, Err(_)) => unreachable!("a length has no more than eight bytes"),
    }
    out.extend_from_slice(value);
    out
}
