//! A list in gzip, made of [compressed runs](super::runs).

use std::sync::Arc;

use bytes::Bytes;

use super::delimiters::Delimiters;
use super::items::ItemWriter;
use super::runs::{Runs, Writing};
use super::{Item, ListPieces};
use crate::body::Pieces;
use crate::respond::gzip::{Chain, Deflater, PIECE_BYTES};

/// A piece ends after so many bytes were compressed for it, however small they became: a few
/// milliseconds of work.
const COMPRESSED_AT_ONCE: usize = 1 << 20;

/// The pieces of a list in gzip.
pub(super) struct CompressedList {
    /// `None` when everything has been written.
    around: Option<Delimiters>,
    items: Vec<Item>,
    /// The number of items that have been written.
    written: usize,
    writer: ItemWriter,
    /// How the items of the next run are written.
    writing: Writing,
    runs: Arc<Runs>,
    /// `None` until a run must be compressed.
    deflater: Option<Deflater>,
    chain: Chain,
}

impl CompressedList {
    /// Takes a list of which nothing was sent; `None` if its items depend on more than their
    /// objects.
    pub(super) fn of(list: &mut ListPieces) -> Option<Self> {
        let writing = list.writer.writing()?;
        let around = list.around.take()?;
        let items = std::mem::take(&mut list.items);
        let (writer, runs) = (list.writer.clone(), list.runs.clone());
        let mut chain = Chain::new();
        chain.store(&around.head);
        let around = Some(around);
        Some(Self { around, items, written: 0, writer, writing, runs, deflater: None, chain })
    }

    /// Adds runs until the piece is full, much was compressed or no item is left, and returns true.
    /// With `only_cached`, returns false at the first run that must be compressed.
    fn fill(&mut self, only_cached: bool) -> bool {
        let mut compressed = 0;
        while self.written < self.items.len()
            && self.chain.len() < PIECE_BYTES
            && compressed < COMPRESSED_AT_ONCE
        {
            let rest = &self.items[self.written..];
            let end = self.written + self.runs.first_run(rest);
            let run = &self.items[self.written..end];
            match self.runs.get(self.writing, run) {
                Some(cached) => self.chain.push(&cached),
                None if only_cached => return false,
                None => compressed += self.compress(end),
            }
            self.written = end;
            self.writing.begins = false;
        }
        true
    }

    /// Compresses the run up to an item, and returns its length.
    fn compress(&mut self, end: usize) -> usize {
        let run = &self.items[self.written..end];
        let between = self.around.as_ref().map_or(&b""[..], |around| around.between);
        let mut plain = Vec::with_capacity(run.iter().map(Item::size).sum::<usize>() + run.len());
        for (at, item) in run.iter().enumerate() {
            if !(self.writing.begins && at == 0) {
                plain.extend_from_slice(between);
            }
            self.writer.write(item, &mut plain);
        }
        match self.deflater.get_or_insert_with(Deflater::new).fragment(&plain) {
            Some(fragment) => {
                self.chain.push(&fragment);
                self.runs.cache(self.writing, run, &fragment);
            }
            None => self.chain.store(&plain),
        }
        plain.len()
    }
}

impl Pieces for CompressedList {
    fn next(&mut self) -> Option<Bytes> {
        self.fill(false);
        if self.written < self.items.len() {
            return Some(self.chain.take());
        }
        self.chain.store(&self.around.take()?.tail);
        Some(self.chain.end())
    }

    fn takes_work(&mut self) -> bool {
        !self.fill(true)
    }
}
