//! The state of a store that no server has open.

use std::path::Path;
use std::sync::Arc;

use crate::engine::{DiskEngine, directory};
use crate::opening::stored_index;
use crate::restoration::refuse_unfinished;
use crate::shared::Shared;
use crate::stored_state::{LocalState, StoredState};
use crate::{Durability, Error, damage};

/// Returns the state of the store in a directory that no server has open. Reading it changes the
/// directory as starting and stopping a server would.
pub fn stopped_state(dir: &Path) -> Result<Box<dyn StoredState>, Error> {
    refuse_unfinished(dir)?;
    if !directory::has_store(dir) {
        return Err(Error::Absent { path: dir.display().to_string() });
    }
    damage::guard(|| {
        let engine = DiskEngine::open(dir, Durability::Disk, None)?;
        let index = stored_index(&engine)?;
        let shared = Arc::new(Shared::new(Box::new(engine), index));
        Ok(Box::new(LocalState::at_head(&shared)) as Box<dyn StoredState>)
    })
}
