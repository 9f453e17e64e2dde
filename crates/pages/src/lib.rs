//! Releases the memory pages of the program's own code.
//!
//! Code that only runs at start-up (flags, certificates, tables) would stay mapped forever, and the
//! kernel maps sixteen pages for each one that is touched. [`release`] unmaps all of them; code
//! that still runs is mapped again from the page cache at its next execution.
//!
//! Must not know the purpose of the program.

#[cfg(target_os = "linux")]
mod linux;

/// Returns the mapped pages of the program's code to the system, and the number of bytes that they
/// may take. It fails on systems that do not report the location of the code or do not release it;
/// nothing has changed then.
#[cfg(target_os = "linux")]
pub fn release() -> std::io::Result<usize> {
    linux::release()
}

/// Fails on systems other than Linux.
#[cfg(not(target_os = "linux"))]
pub fn release() -> std::io::Result<usize> {
    Err(std::io::ErrorKind::Unsupported.into())
}
