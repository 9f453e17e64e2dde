//! Objects whose values could not be decrypted: they are read again, because the key may be
//! available again.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_store::{At, Error, Key, why_undecryptable};

use crate::Registry;

/// Which undecryptable objects are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// All undecryptable objects, because the keys have changed.
    All,
    /// First one object of each collection: the number chooses the object. The other objects of a
    /// collection are read only if the first can be decrypted, so that a missing key costs few
    /// reads.
    Probe(usize),
}

impl Registry {
    /// Reads undecryptable objects again and serves those that can be decrypted now; returns their
    /// number. Watches of their collections end as if the history were lost.
    ///
    /// # Errors
    /// If the store cannot be read.
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
