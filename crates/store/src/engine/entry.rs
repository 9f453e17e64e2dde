//! An entry: a batch in the form in which the journal stores it. Its records are in the form in which
//! the database has them, too.

use bytes::Bytes;

use super::cipher::Cipher;
use super::{Batch, Failure};
use crate::{Record, Revision};

/// An encoded record, with its revision.
pub(super) type Row = (Revision, Bytes);

/// The stored form of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The fingerprint of the configuration by which the values are encrypted.
    pub(super) encryption: u64,
    /// The encoded records, in the order of their revisions.
    pub(super) rows: Vec<Row>,
    /// The new floor, if it changes.
    pub(super) floor: Option<Revision>,
    /// The revisions of the records that are removed.
    pub(super) garbage: Vec<Revision>,
}

impl Entry {
    /// Encodes the records of a batch.
    pub(super) fn of(batch: &Batch, cipher: &Cipher) -> Result<Self, Failure> {
        let encode = |record: &Record| Ok((record.revision, cipher.encode(record)?.into()));
        let rows = batch.records.iter().map(encode).collect::<Result<_, Failure>>()?;
        // The fingerprint is read after the values were encrypted: if the configuration changed
        // meanwhile, it differs from that of the database, which then counts as mixed.
        let encryption = cipher.fingerprint();
        Ok(Self { encryption, rows, floor: batch.floor, garbage: batch.garbage.clone() })
    }

    /// Returns the bytes of the records.
    pub(super) fn row_bytes(&self) -> u64 {
        self.rows.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Returns the length of [`Self::encode`] in bytes.
    pub(super) fn size(&self) -> usize {
        let rows: usize = self.rows.iter().map(|(_, bytes)| 8 + 4 + bytes.len()).sum();
        8 + 1 + 8 + 4 + 8 * self.garbage.len() + 4 + rows
    }

    /// Appends the fields, with big-endian numbers: encryption, whether there is a floor, floor,
    /// number of removed records and their revisions, number of rows, and the revision, length and
    /// bytes of each row.
    pub(super) fn encode(&self, to: &mut Vec<u8>) -> Result<(), Failure> {
        to.extend_from_slice(&self.encryption.to_be_bytes());
        to.push(u8::from(self.floor.is_some()));
        to.extend_from_slice(&self.floor.unwrap_or_default().0.to_be_bytes());
        to.extend_from_slice(&length(self.garbage.len())?);
        for revision in &self.garbage {
            to.extend_from_slice(&revision.0.to_be_bytes());
        }
        to.extend_from_slice(&length(self.rows.len())?);
        for (revision, bytes) in &self.rows {
            to.extend_from_slice(&revision.0.to_be_bytes());
            to.extend_from_slice(&length(bytes.len())?);
            to.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Decodes the bytes of [`Self::encode`]; `None` for other bytes.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let encryption = u64_of(&mut rest)?;
        let has_floor = u8_of(&mut rest)? != 0;
        let floor = Some(Revision(u64_of(&mut rest)?)).filter(|_| has_floor);
        let garbage = (0..u32_of(&mut rest)?).map(|_| u64_of(&mut rest).map(Revision));
        let garbage = garbage.collect::<Option<_>>()?;
        let rows = (0..u32_of(&mut rest)?).map(|_| {
            let revision = Revision(u64_of(&mut rest)?);
            let length = u32_of(&mut rest)? as usize;
            let (row, after) = rest.split_at_checked(length)?;
            rest = after;
            Some((revision, Bytes::copy_from_slice(row)))
        });
        let rows = rows.collect::<Option<_>>()?;
        rest.is_empty().then_some(Self { encryption, rows, floor, garbage })
    }
}

fn length(count: usize) -> Result<[u8; 4], Failure> {
    let count = u32::try_from(count).map_err(|_| Failure("a batch is too large".to_owned()))?;
    Ok(count.to_be_bytes())
}

fn u8_of(rest: &mut &[u8]) -> Option<u8> {
    let (byte, after) = rest.split_first()?;
    *rest = after;
    Some(*byte)
}

fn u32_of(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_be_bytes(*number))
}

fn u64_of(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_be_bytes(*number))
}
