//! The tables of the database: where records are, and how they are found, added and removed.
//!
//! Records that are committed one after the other are packed into [blocks](super::block). Those of
//! a restored snapshot, and those that a version before blocks put into the database, have a row
//! each until the store is converted.
//!
//! It must not know transactions, the journal, or what records mean.
//!
//! Invariants:
//! - A block is stored under the revision of its first record when it was first written. All
//!   records of a block are below the key of the next one.
//! - Every record with a row of its own is older than those in blocks.
//! - Of a block with several records, more than half of the bytes are of records that were not
//!   removed.

use std::ops::Bound;

use redb::{
    AccessGuard, ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition, TableError,
    WriteTransaction,
};

use super::block::{self, Block, Marks};
use super::database::failure;
use super::entry::Row;
use super::{Failure, RowVisitor};
use crate::Revision;

/// The records with a row of their own, by revision.
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
/// The blocks, by their keys.
const BLOCKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("blocks");
/// The marks of the blocks that have some, by the keys of the blocks.
const MARKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("marks");

type Rows<'t> = Table<'t, u64, &'static [u8]>;
type Existing = ReadOnlyTable<u64, &'static [u8]>;

/// A block's key and its bytes.
type Found<'t> = (Revision, AccessGuard<'t, &'static [u8]>);

/// How records are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// In blocks. The records are in the order of their revisions, all above the existing ones.
    Blocks,
    /// Each in a row of its own, in any order, and none above a record in a block.
    Rows,
}

/// The tables in a transaction that changes them.
pub(super) struct Tables<'t> {
    log: Rows<'t>,
    blocks: Rows<'t>,
    marks: Rows<'t>,
}

/// What becomes of a block when records are removed.
enum Remains {
    /// The block as it is: none of the records was still there.
    Unchanged,
    Nothing,
    /// The block with these marks.
    Marked(Vec<u8>),
    /// Another block under the same key.
    Block(Vec<u8>),
}

impl<'t> Tables<'t> {
    /// Opens the tables, or creates them.
    pub(super) fn open(write: &'t WriteTransaction) -> Result<Self, Failure> {
        let open = |table| write.open_table(table).map_err(failure);
        Ok(Self { log: open(LOG)?, blocks: open(BLOCKS)?, marks: open(MARKS)? })
    }

    /// Adds records.
    pub(super) fn insert(&mut self, rows: &[&Row], packing: Packing) -> Result<(), Failure> {
        if packing == Packing::Rows {
            for (revision, record) in rows {
                self.log.insert(revision.0, &**record).map_err(failure)?;
            }
            return Ok(());
        }
        let mut rest = rows;
        while let Some((key, _)) = rest.first() {
            let count = block::fitting(rest.iter().map(|(_, record)| &**record));
            let (fitting, others) = rest.split_at(count);
            let records = fitting.iter().map(|(revision, record)| (*revision, &**record));
            let block = block::encode(*key, records)?;
            self.blocks.insert(key.0, &*block).map_err(failure)?;
            rest = others;
        }
        Ok(())
    }

    /// Removes records, those that exist; returns their bytes.
    pub(super) fn remove(&mut self, mut garbage: Vec<Revision>) -> Result<u64, Failure> {
        garbage.sort_unstable();
        let mut removed = 0;
        let mut rest = &garbage[..];
        while let Some(first) = rest.first() {
            let count = match self.remove_from_block(rest)? {
                Some((count, bytes)) => {
                    removed += bytes;
                    count
                }
                None => {
                    let record = self.log.remove(first.0).map_err(failure)?;
                    removed += record.map_or(0, |record| record.value().len() as u64);
                    1
                }
            };
            rest = &rest[count..];
        }
        Ok(removed)
    }

    /// Removes those of the first records that one block has. Returns how many revisions this
    /// settles and the bytes of the removed records; `None` if no block covers the first revision.
    fn remove_from_block(&mut self, garbage: &[Revision]) -> Result<Option<(usize, u64)>, Failure> {
        let Some(first) = garbage.first() else { return Ok(None) };
        let Some((key, value)) = block_at(&self.blocks, *first)? else { return Ok(None) };
        let block = Block::decode(key, value.value())?;
        let count = garbage.partition_point(|revision| Some(*revision) <= block.last());
        if count == 0 {
            return Ok(None);
        }
        let (remains, removed) = self.without(key, &block, &garbage[..count])?;
        drop(value);
        match remains {
            Remains::Unchanged => {}
            Remains::Marked(marks) => {
                self.marks.insert(key.0, &*marks).map_err(failure)?;
            }
            Remains::Nothing => {
                self.blocks.remove(key.0).map_err(failure)?;
                self.marks.remove(key.0).map_err(failure)?;
            }
            Remains::Block(block) => {
                self.blocks.insert(key.0, &*block).map_err(failure)?;
                self.marks.remove(key.0).map_err(failure)?;
            }
        }
        Ok(Some((count, removed)))
    }

    /// Returns what becomes of a block without some records, and the bytes of these records.
    fn without(
        &self,
        key: Revision,
        block: &Block<'_>,
        garbage: &[Revision],
    ) -> Result<(Remains, u64), Failure> {
        let mut marks = marks_of(&self.marks, key, block)?;
        let mut removed = 0;
        for position in garbage.iter().filter_map(|revision| block.position(*revision)) {
            if !marks.has(position) {
                removed += block.record(position).1.len() as u64;
                marks.add(position);
            }
        }
        if removed == 0 {
            return Ok((Remains::Unchanged, 0)); // a record is never empty
        }
        let left: usize = block.unmarked(&marks).map(|(_, record)| record.len()).sum();
        let remains = if block.unmarked(&marks).next().is_none() {
            Remains::Nothing
        } else if left <= block.bytes() / 2 {
            Remains::Block(block::encode(key, block.unmarked(&marks))?)
        } else {
            Remains::Marked(marks.encode(key))
        };
        Ok((remains, removed))
    }
}

/// Returns the encoded record of a revision, if it exists.
pub(super) fn read(
    transaction: &ReadTransaction,
    revision: Revision,
) -> Result<Option<Vec<u8>>, Failure> {
    if let Some((blocks, marks)) = existing_blocks(transaction)?
        && let Some((key, value)) = block_at(&blocks, revision)?
        && let block = Block::decode(key, value.value())?
        && let Some(position) = block.position(revision)
    {
        let marks = marks_of(&marks, key, &block)?;
        return Ok((!marks.has(position)).then(|| block.record(position).1.to_vec()));
    }
    let Some(log) = existing(transaction, LOG)? else { return Ok(None) };
    let record = log.get(revision.0).map_err(failure)?;
    Ok(record.map(|record| record.value().to_vec()))
}

/// Calls the visitor with the encoded records after a revision, in order, until it returns false;
/// returns whether it did.
pub(super) fn scan(
    transaction: &ReadTransaction,
    after: Revision,
    visitor: &mut RowVisitor<'_>,
) -> Result<bool, Failure> {
    if let Some(log) = existing(transaction, LOG)? {
        let later = (Bound::Excluded(after.0), Bound::Unbounded);
        for row in log.range::<u64>(later).map_err(failure)? {
            let (revision, record) = row.map_err(failure)?;
            if !visitor(Revision(revision.value()), record.value())? {
                return Ok(true);
            }
        }
    }
    let Some((blocks, marks)) = existing_blocks(transaction)? else { return Ok(false) };
    let first = block_at(&blocks, after)?.map_or(after, |(key, _)| key);
    for row in blocks.range(first.0..).map_err(failure)? {
        let (key, value) = row.map_err(failure)?;
        let key = Revision(key.value());
        let block = Block::decode(key, value.value())?;
        let marks = marks_of(&marks, key, &block)?;
        for (revision, record) in block.unmarked(&marks) {
            if revision > after && !visitor(revision, record)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether the database has the table that every version creates.
pub(super) fn exist(transaction: &ReadTransaction) -> Result<bool, Failure> {
    Ok(existing(transaction, LOG)?.is_some())
}

/// Returns the tables of blocks and of their marks; `None` if only a version before blocks wrote to
/// the database. One without the other is damage: removed records must not come back.
fn existing_blocks(transaction: &ReadTransaction) -> Result<Option<(Existing, Existing)>, Failure> {
    match (existing(transaction, BLOCKS)?, existing(transaction, MARKS)?) {
        (Some(blocks), Some(marks)) => Ok(Some((blocks, marks))),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => {
            Err(Failure("its database has one of the tables `blocks` and `marks` alone".to_owned()))
        }
    }
}

fn existing(
    transaction: &ReadTransaction,
    table: TableDefinition<'static, u64, &'static [u8]>,
) -> Result<Option<Existing>, Failure> {
    match transaction.open_table(table) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(failure(error)),
    }
}

/// Returns the last block whose key is not above a revision. If a block has the revision, it is
/// this one.
fn block_at<'t>(
    blocks: &'t impl ReadableTable<u64, &'static [u8]>,
    revision: Revision,
) -> Result<Option<Found<'t>>, Failure> {
    let last = blocks.range(..=revision.0).map_err(failure)?.next_back();
    let found = last.transpose().map_err(failure)?;
    Ok(found.map(|(key, block)| (Revision(key.value()), block)))
}

fn marks_of(
    marks: &impl ReadableTable<u64, &'static [u8]>,
    key: Revision,
    block: &Block<'_>,
) -> Result<Marks, Failure> {
    let bytes = marks.get(key.0).map_err(failure)?;
    bytes.map_or_else(|| Ok(Marks::none(block)), |bytes| Marks::decode(key, block, bytes.value()))
}

#[cfg(test)]
mod tests;
