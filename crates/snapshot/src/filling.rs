//! Filling a store that numbers its writes by itself, such as etcd, with the objects of a snapshot.

use std::io::Read;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pintle_store::{Change, Expect, Group, Record, Store, Template, Transformer, Write, unsealed};

use crate::{Error, Reader};

/// How many objects are written at the same time.
const WRITES_MAX: usize = 64;

/// Creates every object of a snapshot in a store that has none, and returns their number. Objects
/// keep their uids and get new revisions. `transformer` decrypts the values of the snapshot; the
/// store encrypts them again by itself.
///
/// The caller has checked the whole snapshot before, because objects that are written are not
/// removed after an error.
pub async fn fill(
    source: impl Read,
    store: &dyn Store,
    transformer: Option<Arc<dyn Transformer>>,
) -> Result<u64, Error> {
    let mut reader = Reader::new(source)?;
    if !store.stored_state().await?.next().await?.is_empty() {
        return Err(Error::Filled);
    }
    while let Some(records) = reader.next_records()? {
        let creations = stream::iter(records).map(|record| create(store, &transformer, record));
        creations.buffer_unordered(WRITES_MAX).try_collect::<()>().await?;
    }
    reader.end().map(|end| end.records).ok_or(Error::Truncated { bytes: 0 })
}

async fn create(
    store: &dyn Store,
    transformer: &Option<Arc<dyn Transformer>>,
    record: Record,
) -> Result<(), Error> {
    let failed = |why: String| Error::Object {
        collection: record.key.collection.to_string(),
        item: record.key.item.to_string(),
        why,
    };
    let value = unsealed(transformer.as_deref(), &record).map_err(|why| failed(why.0))?;
    let first = Write {
        key: record.key.clone(),
        expect: Expect::Absent,
        change: Change::Put(Template::whole(value.to_vec())),
        note: None,
    };
    let group = Group { first, rest: Vec::new(), unchanged: Vec::new() };
    store.commit(group).await.map_err(|why| failed(why.to_string()))?;
    Ok(())
}
