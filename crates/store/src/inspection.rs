//! Checks the store of a directory without changing it.

use std::path::Path;
use std::sync::Arc;

use crate::engine::{DiskEngine, Engine as _, ReadOnly, check_directory, share};
use crate::failure::Failure;
use crate::{Error, Revision, Transformer, damage};

/// The result of a check that found nothing wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The number of records.
    pub records: u64,
    /// The newest revision.
    pub newest: Revision,
    /// The oldest readable revision.
    pub floor: Revision,
    /// The size of the database and the journal in bytes.
    pub bytes: u64,
}

/// Reads all records of the store in a directory. Nothing in the directory is changed or created;
/// a server that starts meanwhile waits, if the directory has its lock file. `transformer` decrypts values.
///
/// # Errors
/// A process has the store open, the directory holds no store, a part of the store is missing or
/// damaged, or a value cannot be decrypted.
pub fn inspect(
    directory: &Path,
    transformer: Option<Arc<dyn Transformer>>,
) -> Result<Inspection, Error> {
    let _lock = share(directory)?;
    damage::guard(|| {
        check_directory(directory)?;
        let engine = DiskEngine::at(ReadOnly::new(directory)?, transformer)?;
        let floor = engine.floor()?;
        let (mut records, mut newest) = (0, floor);
        engine.scan(Revision(0), &mut |record| {
            records += 1;
            if record.revision > floor {
                let due = Revision(newest.0 + 1);
                if record.revision != due {
                    return Err(Failure(format!("the record of revision {due} is missing")));
                }
                newest = record.revision;
            }
            Ok(true)
        })?;
        let bytes = engine.disk_bytes().unwrap_or_default();
        Ok(Inspection { records, newest, floor, bytes })
    })
}
