//! `memcpy` and `memmove`: musl copies by `rep movsq`, which takes some twenty cycles to begin. Most
//! copies are shorter than that: names, headers, keys.
//!
//! Each function loads bytes before it stores others over them, so copies of overlapping ranges are
//! right.

use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

/// Copies `len` bytes from `from` to `to`, and returns `to`.
///
/// # Safety
/// `len` bytes can be read from `from` and written to `to`.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller promises the same.
    unsafe { copy(to, from, len) };
    to
}

/// Copies `len` bytes from `from` to `to`, which may overlap, and returns `to`.
///
/// # Safety
/// `len` bytes can be read from `from` and written to `to`.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller promises the same.
    unsafe { copy(to, from, len) };
    to
}

/// The width of a vector, and of a step of the loops.
const VECTOR: usize = size_of::<__m128i>();
const STEP: usize = 4 * VECTOR;

/// From this length on the processor's own copying is as fast as a loop of vectors, or faster.
const LONG: usize = 2048;

/// Copies `len` bytes; the ranges may overlap.
///
/// # Safety
/// `len` bytes can be read from `from` and written to `to`.
#[cfg_attr(not(any(target_env = "musl", test)), expect(dead_code, reason = "only musl needs it"))]
#[inline]
unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller promises it; each function gets a length in its own range.
    unsafe {
        match len {
            0 => {}
            1 => *to = *from,
            2..4 => ends::<u16>(to, from, len),
            4..8 => ends::<u32>(to, from, len),
            8..16 => ends::<u64>(to, from, len),
            16..=32 => ends::<[__m128i; 1]>(to, from, len),
            33..=64 => ends::<[__m128i; 2]>(to, from, len),
            65..=128 => ends::<[__m128i; 4]>(to, from, len),
            // The destination begins in the source.
            _ if (to as usize).wrapping_sub(from as usize) < len => backward(to, from, len),
            129..LONG => forward(to, from, len),
            // The source begins in the destination: the processor copies this byte by byte.
            _ if (from as usize).wrapping_sub(to as usize) < len => forward(to, from, len),
            _ => long(to, from, len),
        }
    }
}

/// Copies the first bytes and the last ones, which overlap, by one load and store each.
///
/// # Safety
/// As for [`copy`], and `len` is between the size of `T` and twice that.
#[inline]
unsafe fn ends<T: Copy>(to: *mut u8, from: *const u8, len: usize) {
    let last = len - size_of::<T>();
    // SAFETY: both parts are within the ranges, and no alignment is needed.
    unsafe {
        let (a, b) =
            (from.cast::<T>().read_unaligned(), from.add(last).cast::<T>().read_unaligned());
        to.cast::<T>().write_unaligned(a);
        to.add(last).cast::<T>().write_unaligned(b);
    }
}

/// Copies from the front. The last step overlaps the one before it and is loaded first.
///
/// # Safety
/// As for [`copy`], and `len` is at least [`STEP`]. The destination does not begin in the source.
#[inline]
unsafe fn forward(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: `at` and `last` are at most `len - STEP`.
    unsafe {
        let last = len - STEP;
        let tail = load(from.add(last));
        let mut at = 0;
        while at < last {
            store(to.add(at), load(from.add(at)));
            at += STEP;
        }
        store(to.add(last), tail);
    }
}

/// Copies from the back. The first step overlaps the one after it and is loaded first.
///
/// # Safety
/// As for [`copy`], and `len` is at least [`STEP`].
#[inline]
unsafe fn backward(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: `at` is at least `STEP` and at most `len`.
    unsafe {
        let head = load(from);
        let mut at = len;
        while at > STEP {
            store(to.add(at - STEP), load(from.add(at - STEP)));
            at -= STEP;
        }
        store(to, head);
    }
}

/// Copies by the processor's own instruction.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn long(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the instruction reads and writes exactly these ranges, from the front. The direction
    // flag is clear, as the calling convention says.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// [`STEP`] bytes can be read.
#[inline]
unsafe fn load(from: *const u8) -> [__m128i; 4] {
    // SAFETY: the caller promises it; the load needs no alignment.
    unsafe { [0, 1, 2, 3].map(|n| _mm_loadu_si128(from.add(n * VECTOR).cast())) }
}

/// # Safety
/// [`STEP`] bytes can be written.
#[inline]
unsafe fn store(to: *mut u8, step: [__m128i; 4]) {
    // SAFETY: the caller promises it; the store needs no alignment.
    unsafe {
        let [a, b, c, d] = step;
        _mm_storeu_si128(to.cast(), a);
        _mm_storeu_si128(to.add(VECTOR).cast(), b);
        _mm_storeu_si128(to.add(2 * VECTOR).cast(), c);
        _mm_storeu_si128(to.add(3 * VECTOR).cast(), d);
    }
}

#[cfg(test)]
mod tests {
    use super::{LONG, copy};

    /// Copies within a buffer, and compares it with what the standard library makes of it.
    fn check(to: usize, from: usize, len: usize) {
        let mut buffer: Vec<u8> =
            (0..to.max(from) + len + 8).map(|n| (n * 7 % 251) as u8).collect();
        let mut expected = buffer.clone();
        expected.copy_within(from..from + len, to);
        let start = buffer.as_mut_ptr();
        // SAFETY: both ranges are within the buffer.
        unsafe { copy(start.add(to), start.add(from), len) };
        assert_eq!(buffer, expected, "{len} bytes from {from} to {to}");
    }

    #[test]
    fn ranges_apart_and_overlapping_are_copied() {
        let lengths = (0..600).chain([1000, LONG - 1, LONG, LONG + 1, 5000]);
        for len in lengths {
            for distance in [0, 1, 3, 8, 15, 16, 17, 63, 64, 65, 200, len / 2, len, len + 5] {
                check(3, 3 + distance, len);
                check(3 + distance, 3, len);
            }
        }
    }
}
