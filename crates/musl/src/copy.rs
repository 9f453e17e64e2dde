//! `memcpy` and `memmove` for x86-64: musl's use `rep movsq` for any length, which takes 10 ns or
//! more to begin, and single bytes up to its first and after its last word. These use it only for
//! long copies.

use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_store_si128, _mm_storeu_si128};

/// Copies `len` bytes and returns `dest`, as `memcpy` of the C standard.
///
/// # Safety
/// `len` bytes can be read from `src` and written to `dest`.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcpy(dest: *mut u8, src: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller promises the same.
    unsafe { copy(dest, src, len) };
    dest
}

/// Copies `len` bytes, which may overlap, and returns `dest`, as `memmove` of the C standard.
///
/// # Safety
/// `len` bytes can be read from `src` and written to `dest`.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memmove(dest: *mut u8, src: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller promises the same.
    unsafe { copy(dest, src, len) };
    dest
}

const WORD: usize = size_of::<u64>();
const VECTOR: usize = size_of::<__m128i>();
/// What one step of a long copy moves.
const BLOCK: usize = 4 * VECTOR;
/// From about this length on `rep movsq` is as fast as vectors, and faster for longer copies.
const STRING_MIN: usize = 2048;

/// Copies `len` bytes, which may overlap. Up to the length of a block all bytes are read before the
/// first is written.
///
/// # Safety
/// `len` bytes can be read from `src` and written to `dest`.
#[cfg_attr(not(any(target_env = "musl", test)), expect(dead_code, reason = "only musl needs it"))]
#[inline]
unsafe fn copy(dest: *mut u8, src: *const u8, len: usize) {
    // SAFETY: each part that is moved lies within the `len` bytes.
    unsafe {
        if len <= VECTOR {
            few(dest, src, len);
        } else if len <= 2 * VECTOR {
            let (first, last) = (load(src), load(src.add(len - VECTOR)));
            store(dest, first);
            store(dest.add(len - VECTOR), last);
        } else if len <= BLOCK {
            let (first, last) = (load_two(src), load_two(src.add(len - 2 * VECTOR)));
            store_two(dest, first);
            store_two(dest.add(len - 2 * VECTOR), last);
        } else if dest.addr().wrapping_sub(src.addr()) >= len {
            forwards(dest, src, len);
        } else {
            backwards(dest, src, len);
        }
    }
}

/// Copies at most [`VECTOR`] bytes as two words that may overlap, or byte by byte.
///
/// # Safety
/// As for [`copy`].
#[inline]
const unsafe fn few(dest: *mut u8, src: *const u8, len: usize) {
    // SAFETY: each offset is at most `len` less the width of what is moved.
    unsafe {
        if len >= 8 {
            let (first, last) = (src.cast::<u64>(), src.add(len - 8).cast::<u64>());
            let (first, last) = (first.read_unaligned(), last.read_unaligned());
            dest.cast::<u64>().write_unaligned(first);
            dest.add(len - 8).cast::<u64>().write_unaligned(last);
        } else if len >= 4 {
            let (first, last) = (src.cast::<u32>(), src.add(len - 4).cast::<u32>());
            let (first, last) = (first.read_unaligned(), last.read_unaligned());
            dest.cast::<u32>().write_unaligned(first);
            dest.add(len - 4).cast::<u32>().write_unaligned(last);
        } else if len > 0 {
            let (first, middle, last) = (*src, *src.add(len / 2), *src.add(len - 1));
            *dest = first;
            *dest.add(len / 2) = middle;
            *dest.add(len - 1) = last;
        }
    }
}

/// Copies more than a block in ascending order: `dest` is before `src`, or they do not overlap. The
/// blocks are aligned in `dest`; the ends, which they may not cover, are read first.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn forwards(dest: *mut u8, src: *const u8, len: usize) {
    let end = len - BLOCK;
    // SAFETY: `at` is less than `end` where a block begins, and `dest.add(at)` is aligned.
    unsafe {
        let (first, last) = (load(src), load_block(src.add(end)));
        let mut at = VECTOR - dest.addr() % VECTOR;
        if len >= STRING_MIN {
            words(dest.add(at), src.add(at), (end - at).div_ceil(WORD));
            at = end;
        }
        while at < end {
            store_aligned(dest.add(at), load_block(src.add(at)));
            at += BLOCK;
        }
        store(dest, first);
        store_block(dest.add(end), last);
    }
}

/// Copies words in ascending order.
///
/// # Safety
/// As many words can be read from `src` and written to `dest`.
#[inline]
unsafe fn words(dest: *mut u8, src: *const u8, count: usize) {
    // SAFETY: the caller promises it. The direction flag is clear, as in every function.
    unsafe {
        asm!(
            "rep movsq",
            inout("rcx") count => _,
            inout("rdi") dest => _,
            inout("rsi") src => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies more than a block in descending order: `dest` is behind `src` and overlaps it.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn backwards(dest: *mut u8, src: *const u8, len: usize) {
    // SAFETY: `at` is more than a block where one ends, and `dest.add(at)` is aligned.
    unsafe {
        let (first, last) = (load_block(src), load(src.add(len - VECTOR)));
        let mut at = len - dest.add(len).addr() % VECTOR;
        while at > BLOCK {
            at -= BLOCK;
            store_aligned(dest.add(at), load_block(src.add(at)));
        }
        store_block(dest, first);
        store(dest.add(len - VECTOR), last);
    }
}

/// # Safety
/// [`VECTOR`] bytes can be read.
#[inline]
unsafe fn load(src: *const u8) -> __m128i {
    // SAFETY: the caller promises it; the read needs no alignment.
    unsafe { _mm_loadu_si128(src.cast()) }
}

/// # Safety
/// [`VECTOR`] bytes can be written.
#[inline]
unsafe fn store(dest: *mut u8, vector: __m128i) {
    // SAFETY: the caller promises it; the write needs no alignment.
    unsafe { _mm_storeu_si128(dest.cast(), vector) }
}

/// # Safety
/// Two vectors can be read.
#[inline]
unsafe fn load_two(src: *const u8) -> [__m128i; 2] {
    // SAFETY: the caller promises it.
    unsafe { [load(src), load(src.add(VECTOR))] }
}

/// # Safety
/// Two vectors can be written.
#[inline]
unsafe fn store_two(dest: *mut u8, [first, second]: [__m128i; 2]) {
    // SAFETY: the caller promises it.
    unsafe {
        store(dest, first);
        store(dest.add(VECTOR), second);
    }
}

/// # Safety
/// A block can be read.
#[inline]
unsafe fn load_block(src: *const u8) -> [[__m128i; 2]; 2] {
    // SAFETY: the caller promises it.
    unsafe { [load_two(src), load_two(src.add(2 * VECTOR))] }
}

/// # Safety
/// A block can be written.
#[inline]
unsafe fn store_block(dest: *mut u8, [first, second]: [[__m128i; 2]; 2]) {
    // SAFETY: the caller promises it.
    unsafe {
        store_two(dest, first);
        store_two(dest.add(2 * VECTOR), second);
    }
}

/// # Safety
/// A block can be written, and begins at a multiple of [`VECTOR`].
#[inline]
unsafe fn store_aligned(dest: *mut u8, [[a, b], [c, d]]: [[__m128i; 2]; 2]) {
    let dest: *mut __m128i = dest.cast();
    // SAFETY: the caller promises it.
    unsafe {
        _mm_store_si128(dest, a);
        _mm_store_si128(dest.add(1), b);
        _mm_store_si128(dest.add(2), c);
        _mm_store_si128(dest.add(3), d);
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, STRING_MIN, VECTOR, copy};

    /// Longer than several blocks with their unaligned ends.
    const SHORT_MAX: usize = 4 * BLOCK + 3 * VECTOR;
    const LEN_MAX: usize = STRING_MIN + 2 * BLOCK;

    /// All short lengths, and those about [`STRING_MIN`].
    fn lengths() -> impl Iterator<Item = usize> {
        (0..=SHORT_MAX).chain(STRING_MIN - 2..=STRING_MIN + VECTOR).chain([LEN_MAX])
    }

    /// Copies within one buffer from `src` to `dest`, and compares with a copy byte by byte.
    fn check(src: usize, dest: usize, len: usize) {
        let before: Vec<u8> = (0..2 * LEN_MAX + 2 * BLOCK).map(|at| (at * 7 % 251) as u8).collect();
        let mut expected = before.clone();
        (0..len).for_each(|at| expected[dest + at] = before[src + at]);
        let mut bytes = before;
        // SAFETY: both ranges are in the buffer.
        unsafe { copy(bytes.as_mut_ptr().add(dest), bytes.as_ptr().add(src), len) };
        assert_eq!(bytes, expected, "{len} bytes from {src} to {dest}");
    }

    #[test]
    fn every_length_is_copied_between_every_alignment() {
        for len in lengths() {
            for alignment in 0..VECTOR {
                check(VECTOR, LEN_MAX + BLOCK + alignment, len);
                check(LEN_MAX + BLOCK + alignment, VECTOR, len);
            }
        }
    }

    #[test]
    fn bytes_that_overlap_are_moved() {
        for len in lengths() {
            for distance in [0, 1, 2, 7, 8, 15, 16, 17, 31, 63, 64, 65, 100] {
                for alignment in [0, 1, 9] {
                    check(alignment, alignment + distance, len);
                    check(alignment + distance, alignment, len);
                }
            }
        }
    }
}
