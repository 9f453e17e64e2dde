use super::*;

#[test]
fn the_storage_version_hash_equals_discoverys() {
    let check = |gvk: (&str, &str, &str), hash| assert_eq!(hash_of(gvk.0, gvk.1, gvk.2), hash);
    check(("", "v1", "Pod"), "xPOwRZ+Yhw8=");
    check(("", "v1", "Event"), "r2yiGXH7wu8=");
    check(("", "v1", "Service"), "0/CO1lhkEBI=");
    check(("apps", "v1", "Deployment"), "8aSe+NMegvE=");
}

#[test]
fn names_and_stored_forms_are_read() {
    let folder = std::env::temp_dir().join(format!("xtask-discovery-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a writable temporary directory");
    let core = r#"{"groupVersion":"v1","kind":"APIResourceList","resources":[
        {"name":"endpoints","singularName":"endpoints","kind":"Endpoints","namespaced":true,
         "shortNames":["ep"],"storageVersionHash":"fWeeMqaN/OA=","verbs":["get"]},
        {"name":"bindings","singularName":"binding","kind":"Binding","verbs":["create"]},
        {"name":"pods/status","singularName":"","kind":"Pod","verbs":["get"]}]}"#;
    let events = r#"{"groupVersion":"events.k8s.io/v1","resources":[
        {"name":"events","singularName":"event","kind":"Event","shortNames":["ev"],
         "storageVersionHash":"r2yiGXH7wu8=","verbs":["get"]}]}"#;
    let all = r#"{"kind":"APIGroupList","groups":[]}"#;
    for (name, text) in [("a.json", core), ("b.json", events), ("c.json", all)] {
        fs::write(folder.join(name), text).expect("a writable file");
    }
    let mut sources = Sources::default();
    read(&folder, &mut sources).expect("readable documents");
    fs::remove_dir_all(&folder).expect("removable");

    let facts: Vec<_> =
        sources.named.iter().map(|((g, r), n)| (g.as_str(), r.as_str(), n)).collect();
    let stored_as_core = Some((String::new(), "v1".to_owned()));
    let named = |short: &[&str], storage| Named {
        singular: String::new(),
        short: short.iter().map(|&s| s.to_owned()).collect(),
        categories: Vec::new(),
        storage,
    };
    assert_eq!(
        facts,
        [
            ("", "bindings", &named(&[], None)),
            ("", "endpoints", &named(&["ep"], stored_as_core.clone())),
            ("events.k8s.io", "events", &named(&["ev"], stored_as_core)),
        ]
    );
}
