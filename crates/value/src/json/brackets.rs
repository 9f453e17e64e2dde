//! Finds the end of a list or an object, 64 bytes at a time: of each byte one bit says whether it is
//! a quote, a backslash or a bracket. The bits of the quotes tell which brackets are in strings.

use wide::u8x16;

/// The number of bytes whose bits are one number.
const BLOCK: usize = u64::BITS as usize;

/// The number of bytes in a vector.
const VECTOR: usize = size_of::<u8x16>();

/// Some bytes of a block, the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bits {
    quotes: u64,
    backslashes: u64,
    /// The brackets and braces that begin a list or an object.
    begins: u64,
    /// Those that end one.
    ends: u64,
}

/// Returns the offset after the list or object that begins at `at`; `None` if it does not end.
/// `json` is as for [`super::span::member`].
pub(super) fn container_end(json: &[u8], at: usize) -> Option<usize> {
    if let Some(b'}' | b']') = json.get(at + 1) {
        return Some(at + 2); // an empty one, of which objects have many
    }
    let mut scan = Scan::default();
    let (blocks, rest) = json.get(at..)?.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate() {
        if let Some(end) = scan.block(Bits::of(block)) {
            return Some(at + number * BLOCK + end);
        }
    }
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    scan.block(Bits::of(&last)).map(|end| at + blocks.len() * BLOCK + end)
}

/// The state between two blocks.
#[derive(Default)]
struct Scan {
    /// The number of lists and objects that have begun and not ended.
    depth: u64,
    /// All ones if the next byte is in a string, else zero.
    in_string: u64,
    /// Whether the next byte is escaped.
    is_escaped: bool,
}

impl Scan {
    /// Reads the next block. Returns the offset in it after the end of the outermost container.
    #[inline]
    fn block(&mut self, Bits { quotes, backslashes, begins, ends }: Bits) -> Option<usize> {
        let quotes = quotes & !self.escaped(backslashes);
        let in_string = odd_so_far(quotes) ^ self.in_string;
        self.in_string = (in_string.cast_signed() >> (BLOCK - 1)).cast_unsigned();
        let (begins, ends) = (begins & !in_string, ends & !in_string);
        let (begun, ended) = (u64::from(begins.count_ones()), u64::from(ends.count_ones()));
        if ended < self.depth {
            self.depth = self.depth + begun - ended;
            return None;
        }
        let mut brackets = begins | ends;
        while brackets != 0 {
            let lowest = brackets & brackets.wrapping_neg();
            if begins & lowest != 0 {
                self.depth += 1;
            } else if self.depth <= 1 {
                return Some(lowest.trailing_zeros() as usize + 1);
            } else {
                self.depth -= 1;
            }
            brackets ^= lowest;
        }
        None
    }

    /// The bytes of a block that are escaped.
    #[inline]
    fn escaped(&mut self, mut backslashes: u64) -> u64 {
        let mut escaped = u64::from(std::mem::take(&mut self.is_escaped));
        backslashes &= !escaped;
        while backslashes != 0 {
            let lowest = backslashes & backslashes.wrapping_neg();
            let next = lowest << 1;
            escaped |= next;
            self.is_escaped = next == 0;
            backslashes &= !(lowest | next);
        }
        escaped
    }
}

/// Sets each bit at which the number of ones so far is odd, itself included.
#[inline]
const fn odd_so_far(mut bits: u64) -> u64 {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^ bits << 32
}

/// A bracket and a brace differ in this bit.
const DIFFERS: u8 = b'[' ^ b'{';

impl Bits {
    /// Compares vectors of 16 bytes.
    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut bits = Self::default();
        for (number, bytes) in block.as_chunks::<VECTOR>().0.iter().enumerate() {
            let bytes = u8x16::new(*bytes);
            let braces = bytes | u8x16::splat(DIFFERS);
            let equal = |bytes: u8x16, byte: u8| {
                let is_equal = bytes.cmp_eq(u8x16::splat(byte));
                u64::from(is_equal.move_mask().cast_unsigned()) << (number * VECTOR)
            };
            bits.quotes |= equal(bytes, b'"');
            bits.backslashes |= equal(bytes, b'\\');
            bits.begins |= equal(braces, b'{');
            bits.ends |= equal(braces, b'}');
        }
        bits
    }

    /// Compares byte by byte.
    #[cfg(test)]
    fn one_by_one(block: &[u8; BLOCK]) -> Self {
        let mut bits = Self::default();
        for (place, byte) in block.iter().enumerate() {
            bits.quotes |= u64::from(*byte == b'"') << place;
            bits.backslashes |= u64::from(*byte == b'\\') << place;
            bits.begins |= u64::from(byte | DIFFERS == b'{') << place;
            bits.ends |= u64::from(byte | DIFFERS == b'}') << place;
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The end, found byte by byte. Outside of strings, valid JSON has no backslash.
    fn expected(json: &[u8], at: usize) -> Option<usize> {
        let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
        for (place, byte) in json.iter().enumerate().skip(at) {
            let was_escaped = std::mem::take(&mut is_escaped);
            match byte {
                b'\\' => is_escaped = !was_escaped,
                b'"' => in_string ^= !was_escaped,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= 1 => return Some(place + 1),
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        None
    }

    proptest! {
        #[test]
        fn the_end_is_that_of_a_search_byte_by_byte(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", r#"""#, r"\", r#"{"a":"#, r#""}""#, r#""\"}""#, ",", "x",
                    "0123456789abcdef", r#""\\""#, r"\\\", "é",
                ]),
                0..120,
            ),
            at in 0_usize..70,
        ) {
            let json = format!("{}{{{}", " ".repeat(at), parts.concat());
            prop_assert_eq!(container_end(json.as_bytes(), at), expected(json.as_bytes(), at));
        }

        #[test]
        fn the_bits_are_those_of_the_bytes(bytes in prop::array::uniform32(any::<u8>())) {
            let mut block = [b'}'; BLOCK];
            block[7..39].copy_from_slice(&bytes);
            prop_assert_eq!(Bits::of(&block), Bits::one_by_one(&block));
        }
    }

    #[test]
    fn containers_end_wherever_blocks_do() {
        for before in 0..70 {
            for inside in 0..140 {
                for text in ["x", r"\\", r#"\""#, "}"] {
                    let string = format!("\"{}\"", text.repeat(inside));
                    let json = format!("{}[{string},{{}},[[]]]]", "}".repeat(before));
                    assert_eq!(container_end(json.as_bytes(), before), Some(json.len() - 1));
                    let cut = &json.as_bytes()[..json.len() - 2];
                    assert_eq!(container_end(cut, before), None, "{json}");
                }
            }
        }
    }
}
