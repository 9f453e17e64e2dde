//! Reading a snapshot: each block is checked before its records are passed on.

use std::io::{ErrorKind, Read};

use bytes::{Buf, Bytes};
use pintle_store::{Record, Revision};
use sha2::{Digest, Sha256};

use crate::block::{
    self, CHECKSUM_LEN, CONTENT_BYTES_MAX, END, END_LEN, HEAD_LEN, HEADER, RECORDS,
};
use crate::{Error, Header};

/// A content is read in steps of this size: the length in a block's head is not trusted, so that a
/// damaged one does not allocate too much.
const STEP_BYTES: usize = 1 << 20;

/// Reads a snapshot from its first byte to its last.
pub struct Reader<R> {
    source: R,
    header: Header,
    /// The number of bytes that were read.
    bytes: u64,
    /// The number of blocks that were read.
    blocks: u64,
    records: u64,
    digest: Sha256,
    end: Option<End>,
}

/// The facts about a snapshot that its end block has, and the length of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The revision of the state.
    pub revision: Revision,
    /// The number of records.
    pub records: u64,
    /// The SHA-256 of the file up to its end block, in hexadecimal.
    pub sha256: String,
    /// The length of the file in bytes.
    pub bytes: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub fn new(source: R) -> Result<Self, Error> {
        let (bytes, blocks, records) = (0, 0, 0);
        let (header, digest, end) = (Header::default(), Sha256::new(), None);
        let mut reader = Self { source, header, bytes, blocks, records, digest, end };
        let mut line = Vec::new();
        let length = reader.fill(block::FIRST_LINE_LEN, &mut line)?;
        match block::parse_first_line(&line) {
            Some(block::FORMAT) => {}
            Some(found) => return Err(Error::Format { found, supported: block::FORMAT }),
            // A file that is cut in its first line is a truncated snapshot.
            None if length > 0
                && block::first_line(block::FORMAT).as_bytes().starts_with(&line) =>
            {
                return Err(Error::Truncated { bytes: reader.bytes });
            }
            None => return Err(Error::Foreign),
        }
        reader.digest.update(&line);
        let at = reader.bytes;
        reader.header = match reader.block()? {
            (HEADER, content) => Header::decode(&content),
            _ => None,
        }
        .ok_or(Error::Damaged { at, why: "it is not a header" })?;
        Ok(reader)
    }

    /// Returns the header of the snapshot.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the records of the next block; `None` at the end, when the whole file was checked.
    pub fn next_records(&mut self) -> Result<Option<Vec<Record>>, Error> {
        if self.end.is_some() {
            return Ok(None);
        }
        let at = self.bytes;
        let before = self.digest.clone();
        match self.block()? {
            (RECORDS, content) => {
                let records = block::read_records(content);
                let records =
                    records.ok_or(Error::Damaged { at, why: "its records are invalid" })?;
                self.records += records.len() as u64;
                Ok(Some(records))
            }
            (END, content) => {
                self.end = Some(self.check_end(before, content, at)?);
                Ok(None)
            }
            _ => Err(Error::Damaged { at, why: "its type is unknown" }),
        }
    }

    /// Returns the facts of the end block, once [`Self::next_records`] has returned `None`.
    pub const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    fn check_end(&mut self, digest: Sha256, mut content: Bytes, at: u64) -> Result<End, Error> {
        let damaged = |why| Err(Error::Damaged { at, why });
        if content.len() != END_LEN {
            return damaged("its length is wrong");
        }
        let (revision, records) = (Revision(content.get_u64()), content.get_u64());
        let digest = digest.finalize();
        if digest.as_slice() != &*content {
            return damaged("the SHA-256 of the file is another one");
        }
        if records != self.records {
            return damaged("the number of records is another one");
        }
        let mut rest = Vec::new();
        if self.fill(1, &mut rest)? > 0 {
            return damaged("something follows the end");
        }
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(End { revision, records, sha256, bytes: self.bytes })
    }

    /// Reads a block and checks its checksum.
    fn block(&mut self) -> Result<(u8, Bytes), Error> {
        let at = self.bytes;
        let mut read = Vec::new();
        self.whole(HEAD_LEN, &mut read)?;
        let mut head = &read[..];
        let (length, kind) = (head.get_u32() as usize, head.get_u8());
        if length > CONTENT_BYTES_MAX {
            return Err(Error::Damaged { at, why: "its length is beyond the limit" });
        }
        self.whole(length + CHECKSUM_LEN, &mut read)?;
        self.digest.update(&read);
        let mut content = Bytes::from(read).split_off(HEAD_LEN);
        let mut checksum = content.split_off(length);
        if checksum.get_u32() != block::checksum(self.blocks, kind, &content) {
            return Err(Error::Damaged { at, why: "its checksum is wrong" });
        }
        self.blocks += 1;
        Ok((kind, content))
    }

    /// Appends exactly this many bytes.
    fn whole(&mut self, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.fill(length, out)? {
            read if read == length => Ok(()),
            _ => Err(Error::Truncated { bytes: self.bytes }),
        }
    }

    /// Appends this many bytes, or fewer at the end of the source; returns their number.
    fn fill(&mut self, length: usize, out: &mut Vec<u8>) -> Result<usize, Error> {
        let begin = out.len();
        while out.len() - begin < length {
            let at = out.len();
            out.resize(at + (length - (at - begin)).min(STEP_BYTES), 0);
            let read = match self.source.read(&mut out[at..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    out.truncate(at);
                    continue;
                }
                read => read?,
            };
            out.truncate(at + read);
            self.bytes += read as u64;
            if read == 0 {
                break;
            }
        }
        Ok(out.len() - begin)
    }
}
