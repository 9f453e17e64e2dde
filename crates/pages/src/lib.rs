//! The pages of the program's own code in memory.
//!
//! Purpose: what only the start of the program runs (flags, certificates, tables) stays mapped for ever,
//! and the kernel maps sixteen pages for each one that is touched. [`release`] unmaps all of them; what
//! runs on is mapped again from the page cache when it is next executed.
//!
//! Must not know: what the program is.

#[cfg(target_os = "linux")]
mod linux;

/// Gives the mapped pages of the program's code back to the system, and returns how many bytes they may
/// take. The error is for systems that do not tell where the code lies, or do not take it back; nothing
/// has changed then.
#[cfg(target_os = "linux")]
pub fn release() -> std::io::Result<usize> {
    linux::release()
}

/// See the other `release`: here the system is not asked.
#[cfg(not(target_os = "linux"))]
pub fn release() -> std::io::Result<usize> {
    Err(std::io::ErrorKind::Unsupported.into())
}
