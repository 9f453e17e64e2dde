//! Bodies in pieces, which are encoded while they are sent.

use bytes::Bytes;

/// A piece of a streamed body is sent once it has this size, so that frames and TLS records are
/// full. It is also the size above which a body is compressed (CMP-03).
pub(crate) const CHUNK_BYTES: usize = 128 * 1024;

/// A body that is encoded while it is sent.
pub(crate) trait Pieces: Send {
    /// The next piece; `None` at the end.
    fn next(&mut self) -> Option<Bytes>;

    /// Whether the next piece takes more work than copying, so that it is encoded on a separate
    /// thread. A piece that is only copied may be prepared here.
    fn takes_work(&mut self) -> bool;

    /// The same bytes in gzip, if these pieces have a better way than to be compressed one after the
    /// other. They are empty then. Called before any piece is taken.
    fn compressed(&mut self) -> Option<Box<dyn Pieces>> {
        None
    }
}

/// Pieces that exist already.
pub(crate) struct Ready<I>(pub(crate) I);

impl<I: Iterator<Item = Bytes> + Send> Pieces for Ready<I> {
    fn next(&mut self) -> Option<Bytes> {
        self.0.next()
    }

    fn takes_work(&mut self) -> bool {
        false
    }
}

/// Pieces with ready ones before and behind them.
pub(super) struct Framed {
    pub(super) before: std::vec::IntoIter<Bytes>,
    pub(super) pieces: Option<Box<dyn Pieces>>,
    pub(super) behind: Option<Bytes>,
}

impl Pieces for Framed {
    fn next(&mut self) -> Option<Bytes> {
        if let Some(piece) = self.before.next() {
            return Some(piece);
        }
        if let Some(piece) = self.pieces.as_mut().and_then(|pieces| pieces.next()) {
            return Some(piece);
        }
        self.pieces = None;
        self.behind.take()
    }

    fn takes_work(&mut self) -> bool {
        self.before.len() == 0 && self.pieces.as_mut().is_some_and(|pieces| pieces.takes_work())
    }
}

/// Cuts bytes into pieces of [`CHUNK_BYTES`].
pub(super) fn cut(mut bytes: Bytes) -> impl Iterator<Item = Bytes> + Send {
    std::iter::from_fn(move || {
        (!bytes.is_empty()).then(|| bytes.split_to(bytes.len().min(CHUNK_BYTES)))
    })
}
