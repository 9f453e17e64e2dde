//! Linux: `/proc/self/maps` and `madvise`.

use std::io::{Error, ErrorKind, Result};
use std::ops::Range;

use rustix::mm::{Advice, madvise};

/// Releases the mapping that contains this function's code.
pub(crate) fn release() -> Result<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let here = release as fn() -> Result<usize> as usize;
    let code = mapping(&maps, here).ok_or(ErrorKind::NotFound)?;
    let begin = std::ptr::with_exposed_provenance_mut(code.start);
    // SAFETY: The mapping is the program's code: private, backed by the program's file, and not
    // writable (`mapping` checks it). So no page of it was modified, the kernel reads the same
    // bytes from the file at the next access, and the target of every reference stays unchanged.
    // The file cannot change while it is executed (ETXTBSY).
    #[expect(unsafe_code)]
    unsafe { madvise(begin, code.len(), Advice::LinuxDontNeed) }.map_err(Error::from)?;
    Ok(code.len())
}

/// The mapping that contains an address, if it is file-backed, private, executable and not
/// writable.
fn mapping(maps: &str, address: usize) -> Option<Range<usize>> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (begin, end) = fields.next()?.split_once('-')?;
        let [begin, end] = [begin, end].map(|text| usize::from_str_radix(text, 16));
        let range = begin.ok()?..end.ok()?;
        let permissions = fields.next()?;
        let inode = fields.nth(2)?;
        (range.contains(&address) && permissions == "r-xp" && inode != "0").then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_backed_code_is_found() {
        let maps = "\
1000-3000 r--p 00000000 fe:00 77 /usr/bin/pintle
3000-9000 r-xp 00002000 fe:00 77 /usr/bin/pintle
9000-a000 rw-p 00008000 fe:00 77 /usr/bin/pintle
a000-b000 rwxp 00000000 fe:00 77 /usr/bin/pintle
b000-c000 r-xp 00000000 00:00 0 
c000-d000 r-xs 00000000 fe:00 78 /shared
nonsense
";
        let rows = [
            (0x2fff, None),
            (0x3000, Some(0x3000..0x9000)),
            (0x8fff, Some(0x3000..0x9000)),
            (0x9000, None),
            (0xa000, None),
            (0xb000, None),
            (0xc000, None),
            (0xf000, None),
        ];
        for (address, expected) in rows {
            assert_eq!(mapping(maps, address), expected, "{address:x}");
        }
    }

    /// Code that released itself continues to run, in other threads, too.
    #[test]
    fn released_code_continues_to_run() {
        let sum = || (0..1000_u64).map(std::hint::black_box).sum::<u64>();
        std::thread::scope(|scope| {
            let others: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..1000).map(|_| sum()).sum::<u64>())).collect();
            for _ in 0..100 {
                assert!(release().expect("Linux releases the code") > 0);
                assert_eq!(sum(), 499_500);
            }
            for other in others {
                assert_eq!(other.join().expect("the thread ends"), 499_500_000);
            }
        });
    }
}
