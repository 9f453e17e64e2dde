//! Making a snapshot: the bytes of the file, piece by piece.

use bytes::{BufMut, Bytes};
use pintle_store::{Record, StoredState};
use sha2::{Digest, Sha256};

use crate::block::{self, CONTENT_BYTES, CONTENT_BYTES_MAX, END, HEADER, RECORDS};
use crate::{Error, Header};

/// A snapshot that is being made of a state. The store keeps the state until this value is dropped.
pub struct Saving {
    state: Box<dyn StoredState>,
    stage: Stage,
    /// The bytes that are encoded and not returned yet.
    encoded: Vec<u8>,
    /// The records of the block that is not closed yet.
    content: Vec<u8>,
    blocks: u64,
    records: u64,
    digest: Sha256,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Records,
    Ended,
}

impl Saving {
    /// Begins a snapshot of a state.
    pub fn new(state: Box<dyn StoredState>, header: &Header) -> Self {
        let mut saving = Self {
            state,
            stage: Stage::Records,
            encoded: block::first_line(block::FORMAT).into_bytes(),
            content: Vec::new(),
            blocks: 0,
            records: 0,
            digest: Sha256::new(),
        };
        saving.close(HEADER, header.encode().as_bytes());
        saving
    }

    /// Returns the next bytes of the file; `None` at its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        while self.encoded.len() < CONTENT_BYTES && self.stage == Stage::Records {
            let records = self.state.next().await?;
            if records.is_empty() {
                self.end();
            }
            for record in &records {
                self.add(record)?;
            }
        }
        let encoded = std::mem::take(&mut self.encoded);
        if self.stage == Stage::Records {
            self.digest.update(&encoded);
        }
        Ok((!encoded.is_empty()).then(|| encoded.into()))
    }

    fn add(&mut self, record: &Record) -> Result<(), Error> {
        let bytes = block::record_len(record);
        if bytes > CONTENT_BYTES_MAX {
            let (collection, item) = (&record.key.collection, &record.key.item);
            let (collection, item) = (collection.to_string(), item.to_string());
            return Err(Error::TooLarge { collection, item, bytes });
        }
        if self.content.len() + bytes > CONTENT_BYTES {
            self.close_records();
        }
        block::write_record(record, &mut self.content);
        self.records += 1;
        Ok(())
    }

    fn close_records(&mut self) {
        if !self.content.is_empty() {
            let mut content = std::mem::take(&mut self.content);
            self.close(RECORDS, &content);
            content.clear();
            self.content = content;
        }
    }

    fn end(&mut self) {
        self.close_records();
        self.digest.update(&self.encoded);
        let digest = std::mem::take(&mut self.digest).finalize();
        let mut content = Vec::with_capacity(block::END_LEN);
        content.put_u64(self.state.revision().0);
        content.put_u64(self.records);
        content.put_slice(&digest);
        self.close(END, &content);
        self.stage = Stage::Ended;
    }

    fn close(&mut self, kind: u8, content: &[u8]) {
        block::write(self.blocks, kind, content, &mut self.encoded);
        self.blocks += 1;
    }
}
