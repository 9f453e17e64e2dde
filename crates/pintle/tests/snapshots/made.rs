//! Snapshots that are made without a server, which would take long to write so many objects.

use std::fs;
use std::path::Path;

use pintle_snapshot::{Header, Saving};
use pintle_store::{BoxFuture, Key, Kind, Record, Revision, StoredState};
use serde_json::json;

/// A state of ConfigMaps of a kilobyte.
struct ConfigMaps {
    made: u64,
    count: u64,
}

impl StoredState for ConfigMaps {
    fn revision(&self) -> Revision {
        Revision(self.count + 10)
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Record>, pintle_store::Error>> {
        let portion = self.made + 1..=self.count.min(self.made + 1000);
        self.made = *portion.end();
        let records = portion.map(config_map).collect();
        Box::pin(async move { Ok(records) })
    }
}

fn config_map(revision: u64) -> Record {
    let name = format!("c{revision}");
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("00000000-0000-4000-8000-{revision:012}"),
            "resourceVersion": revision.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "data": {"k": "x".repeat(1000)},
    });
    let key = Key { collection: "configmaps".into(), item: format!("default/{name}").into() };
    let bytes = bytes::Bytes::from(object.to_string());
    let (revision, kind, body) = (Revision(revision), Kind::Created, 0..bytes.len());
    Record { revision, key, kind, bytes, body, note: None }
}

/// Writes a snapshot of `count` ConfigMaps and returns its bytes.
pub(crate) fn write(path: &Path, count: u64) -> Vec<u8> {
    let header = Header {
        created_unix_micros: 1_790_000_000_000_000,
        program: "test".to_owned(),
        source: "embedded".to_owned(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut saving = Saving::new(Box::new(ConfigMaps { made: 0, count }), &header);
    let mut file = Vec::new();
    while let Some(piece) = runtime.block_on(saving.next()).unwrap() {
        file.extend_from_slice(&piece);
    }
    fs::write(path, &file).unwrap();
    file
}
