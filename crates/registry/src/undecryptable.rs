//! Objects whose values could not be decrypted: they are read again, since the key may have come back.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_store::{At, Error, Key, why_undecryptable};

use crate::Registry;

/// How many of the objects that could not be decrypted are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Every one: the keys have changed.
    All,
    /// One of each collection, another one with each number. The others only follow if it can be decrypted, so
    /// that keys that stay away cost little.
    Probe(usize),
}

impl Registry {
    /// Reads objects again whose values could not be decrypted, and serves those that can be decrypted now.
    /// Gives their number. Watches of a collection that has some end as if its history were lost.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub async fn retry_undecryptable(&self, retry: Retry) -> Result<usize, Error> {
        let mut count = 0;
        for (collection, items) in self.cache.undecryptable() {
            count += self.retry_in(&collection, &items, retry).await?;
        }
        Ok(count)
    }

    async fn retry_in(
        &self,
        collection: &Arc<str>,
        items: &BTreeSet<Arc<str>>,
        retry: Retry,
    ) -> Result<usize, Error> {
        let probe = match retry {
            Retry::All => None,
            Retry::Probe(number) => items.iter().nth(number % items.len().max(1)),
        };
        let mut readable = Vec::new();
        let others = items.iter().filter(|item| Some(*item) != probe);
        for item in probe.into_iter().chain(others) {
            let key = Key { collection: collection.clone(), item: item.clone() };
            let record = self.store.get(&key, At::Head).await?;
            let record = record.filter(|record| why_undecryptable(&record.bytes).is_none());
            if record.is_none() && Some(item) == probe {
                return Ok(0);
            }
            readable.extend(record);
        }
        if !readable.is_empty() {
            self.cache.replace_undecryptable(collection, &readable);
        }
        Ok(readable.len())
    }
}
