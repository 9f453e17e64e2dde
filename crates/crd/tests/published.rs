//! Definitions of well-known projects are valid; runs if the fixtures are present.

use std::fs;
use std::path::Path;

use pintle_value::{Value, yaml};

#[test]
fn published_definitions_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/crds");
    let Ok(files) = fs::read_dir(folder) else { return };
    for file in files {
        let path = file.expect("a file").path();
        let text = fs::read_to_string(&path).expect("text");
        let mut crd = yaml::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let names: Vec<Value> = pintle_crd::Crd(&crd)
            .versions()
            .filter(|version| version.is_storage())
            .map(|version| version.name().into())
            .collect();
        crd.make_object().insert("status", Value::from([("storedVersions", names)]));
        let errors = pintle_crd::validate(&crd, None);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{path:?}: {texts:#?}");
    }
}
