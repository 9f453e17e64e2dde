//! The objects of two servers, compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::program::Client;

/// Every object that the server lists at a revision, or now, by its path.
pub(crate) fn objects(client: &mut Client, at: Option<u64>) -> BTreeMap<String, Value> {
    let mut groups = vec!["/api/v1".to_owned()];
    for group in client.get("/apis")["groups"].as_array().unwrap() {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        groups.push(format!("/apis/{version}"));
    }
    let at = at.map(|at| format!("?resourceVersion={at}&resourceVersionMatch=Exact"));
    let at = at.unwrap_or_default();
    let mut objects = BTreeMap::new();
    for group in groups {
        for resource in client.get(&group)["resources"].as_array().unwrap() {
            let is_listed = resource["verbs"].as_array().unwrap().iter().any(|verb| verb == "list");
            let name = resource["name"].as_str().unwrap();
            if !is_listed || name == "componentstatuses" {
                continue;
            }
            for item in client.get(&format!("{group}/{name}{at}"))["items"].as_array().unwrap() {
                let metadata = &item["metadata"];
                let path = format!("{group}/{name}/{}/{}", metadata["namespace"], metadata["name"]);
                objects.insert(path, item.clone());
            }
        }
    }
    objects
}

pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Copies the certificates of a server, so that clients of the server accept its restored copy.
pub(crate) fn copy_certificates(from: &Path, to: &Path) {
    fs::create_dir(to.join("pki")).unwrap();
    for entry in fs::read_dir(from.join("pki")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join("pki").join(entry.file_name())).unwrap();
    }
}

/// Checks that every object of the snapshot is unchanged, unless the restored server has written it
/// since; events and leases may be gone.
pub(crate) fn compare(
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
    revision: u64,
) {
    assert!(before.len() > 100, "{}", before.len());
    let mut same = 0;
    for (path, object) in before {
        let now = after.get(path);
        match now.map(version) {
            Some(version) if version <= revision => {
                assert_eq!(now, Some(object), "{path}");
                same += 1;
            }
            Some(_) => {
                assert_eq!(now.unwrap()["metadata"]["uid"], object["metadata"]["uid"], "{path}")
            }
            None => {
                assert!(path.contains("/events/") || path.contains("/leases/"), "{path} is lost")
            }
        }
    }
    let new: Vec<_> = after.iter().filter(|(path, _)| !before.contains_key(*path)).collect();
    assert!(new.iter().all(|(_, object)| version(object) > revision), "{new:?}");
    assert!(same + 20 > before.len(), "{same} of {} are as they were", before.len());
}
