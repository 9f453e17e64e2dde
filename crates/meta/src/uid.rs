//! Uids: UUIDs of version 4 (RFC 9562). The random bytes are an argument (META-04).

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Formats 16 random bytes as a UUID.
pub fn format(random: [u8; 16]) -> String {
    let mut bits = u128::from_be_bytes(random);
    bits = bits & !(0xf << 76) | 0x4 << 76; // version: 4, random
    bits = bits & !(0x3 << 62) | 0x2 << 62; // variant: RFC 9562
    let mut text = String::with_capacity(36);
    for (at, byte) in bits.to_be_bytes().into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(HEX[usize::from(byte >> 4)]));
        text.push(char::from(HEX[usize::from(byte & 0xf)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn version_and_variant_are_set() {
        for (random, uid) in [
            ([0x00; 16], "00000000-0000-4000-8000-000000000000"),
            ([0xff; 16], "ffffffff-ffff-4fff-bfff-ffffffffffff"),
            (
                *b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef",
                "01234567-89ab-4def-8123-456789abcdef",
            ),
        ] {
            assert_eq!(format(random), uid);
        }
    }
}
