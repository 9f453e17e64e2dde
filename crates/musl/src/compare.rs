//! `memcmp` and `bcmp`: musl compares byte by byte, this by words.

use core::ffi::c_int;

/// Compares `len` bytes: negative, zero or positive, as `memcmp` of the C standard.
///
/// # Safety
/// `len` bytes from `left` and from `right` can be read.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> c_int {
    // SAFETY: the caller promises the same.
    unsafe { compare(left, right, len) }
}

/// Compares `len` bytes: zero if they are equal.
///
/// # Safety
/// `len` bytes from `left` and from `right` can be read.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, len: usize) -> c_int {
    // SAFETY: the caller promises the same.
    unsafe { compare(left, right, len) }
}

const WORD: usize = size_of::<u64>();
const HALF: usize = size_of::<u32>();

/// Compares words from the front. The last word overlaps bytes that are known to be equal.
///
/// # Safety
/// `len` bytes from `left` and from `right` can be read.
#[cfg_attr(not(any(target_env = "musl", test)), expect(dead_code, reason = "only musl needs it"))]
#[inline]
unsafe fn compare(left: *const u8, right: *const u8, len: usize) -> c_int {
    // SAFETY: each offset below is at most `len` less the width of what is read there.
    unsafe {
        if len >= WORD {
            let mut at = 0;
            while at < len - WORD {
                let (a, b) = (word(left.add(at)), word(right.add(at)));
                if a != b {
                    return order(u64::from_be(a), u64::from_be(b));
                }
                at += WORD;
            }
            let last = len - WORD;
            let (a, b) = (word(left.add(last)), word(right.add(last)));
            return order(u64::from_be(a), u64::from_be(b));
        }
        if len >= HALF {
            let (a, b) = (half(left), half(right));
            let last = len - HALF;
            let (c, d) = (half(left.add(last)), half(right.add(last)));
            return order(join(a, c), join(b, d));
        }
        let mut at = 0;
        while at < len {
            let (a, b) = (*left.add(at), *right.add(at));
            if a != b {
                return c_int::from(a) - c_int::from(b);
            }
            at += 1;
        }
        0
    }
}

/// Joins the first and the last bytes to a number that compares as the bytes do.
const fn join(first: u32, last: u32) -> u64 {
    (u32::from_be(first) as u64) << 32 | u32::from_be(last) as u64
}

const fn order(a: u64, b: u64) -> c_int {
    (a > b) as c_int - (a < b) as c_int
}

/// # Safety
/// Eight bytes can be read.
#[inline]
const unsafe fn word(bytes: *const u8) -> u64 {
    // SAFETY: the caller promises it; the read needs no alignment.
    unsafe { bytes.cast::<u64>().read_unaligned() }
}

/// # Safety
/// Four bytes can be read.
#[inline]
const unsafe fn half(bytes: *const u8) -> u32 {
    // SAFETY: the caller promises it; the read needs no alignment.
    unsafe { bytes.cast::<u32>().read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::compare;

    fn check(left: &[u8], right: &[u8]) {
        let len = left.len().min(right.len());
        let (left, right) = (&left[..len], &right[..len]);
        // SAFETY: both have `len` bytes.
        let compared = unsafe { compare(left.as_ptr(), right.as_ptr(), len) };
        assert_eq!(compared.cmp(&0), left.cmp(right), "{left:?} and {right:?}");
    }

    #[test]
    fn texts_that_differ_in_one_or_two_bytes_compare_as_slices() {
        let text: Vec<u8> = (0..40).map(|index| index * 6 + 10).collect();
        for len in 0..=text.len() {
            check(&text[..len], &text[..len]);
            for first in 0..len {
                for second in first..len {
                    for change in [1, 0x80, 0xff] {
                        let mut other = text[..len].to_vec();
                        other[first] ^= change;
                        other[second] = other[second].wrapping_add(change);
                        check(&text[..len], &other);
                        check(&other, &text[..len]);
                    }
                }
            }
        }
    }
}
