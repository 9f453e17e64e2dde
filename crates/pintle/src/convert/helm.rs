//! Reads Helm releases: the records of installed charts, in secrets or config maps.
//!
//! Helm cannot upgrade a release whose manifest has a removed version, although its objects exist
//! in a newer version.

use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use pintle_meta::object;
use pintle_value::{Value, json};

use super::documents;

/// The type of secrets with a release.
pub(super) const SECRET_TYPE: &str = "helm.sh/release.v1";
/// The limit of an unpacked release. A secret has at most 1 MiB, which gzip can expand a
/// thousandfold.
const RELEASE_BYTES_MAX: u64 = 64 << 20;
/// The status of revisions that are not in use, so they are never upgraded.
const UNUSED: [&str; 2] = ["superseded", "uninstalled"];

/// An installed release.
#[derive(Debug, PartialEq)]
pub(super) struct Release {
    /// `shop.v3`
    pub name: String,
    pub objects: Vec<Value>,
}

/// The installed release in an object, if it contains one.
///
/// # Errors
/// If the object contains a release that cannot be read.
pub(super) fn release(tree: &Value) -> Result<Option<Release>> {
    let Some(packed) = packed(tree)? else { return Ok(None) };
    let bytes = unpacked(&packed)?;
    let release = json::parse(&bytes).context("its JSON")?;
    let status = release.str_at(&["info", "status"]).unwrap_or_default();
    if UNUSED.contains(&status) {
        return Ok(None);
    }
    let name = release.str_at(&["name"]).unwrap_or_else(|| object::name(tree));
    let name = match release.get("version") {
        Some(Value::Int(revision)) => format!("{name}.v{revision}"),
        _ => name.to_owned(),
    };
    let manifest = release.str_at(&["manifest"]).unwrap_or_default();
    let documents = documents::read(manifest.as_bytes()).context("its manifest")?;
    let objects = documents.into_iter().map(|document| document.tree).collect();
    Ok(Some(Release { name, objects }))
}

/// The packed release in a secret or a config map. In a secret it is encoded in base64 twice: by
/// Helm and by the API.
fn packed(tree: &Value) -> Result<Option<Vec<u8>>> {
    let kind = (tree.str_at(&["apiVersion"]), tree.str_at(&["kind"]));
    let is_helms = tree.str_at(&["metadata", "labels", "owner"]) == Some("helm");
    let text = tree.str_at(&["data", "release"]);
    let decode = |text: &[u8]| STANDARD.decode(text).context("its base64");
    match (kind, text) {
        ((Some("v1"), Some("Secret")), Some(text))
            if tree.str_at(&["type"]) == Some(SECRET_TYPE) =>
        {
            Ok(Some(decode(&decode(text.as_bytes())?)?))
        }
        ((Some("v1"), Some("ConfigMap")), Some(text)) if is_helms => {
            Ok(Some(decode(text.as_bytes())?))
        }
        _ => Ok(None),
    }
}

/// Decompresses a release. Early versions of Helm did not compress releases.
fn unpacked(packed: &[u8]) -> Result<Vec<u8>> {
    if !packed.starts_with(&[0x1f, 0x8b]) {
        return Ok(packed.to_vec());
    }
    let mut bytes = Vec::new();
    let mut reader = GzDecoder::new(packed).take(RELEASE_BYTES_MAX + 1);
    reader.read_to_end(&mut bytes).context("its gzip")?;
    let is_bounded = u64::try_from(bytes.len()).is_ok_and(|bytes| bytes <= RELEASE_BYTES_MAX);
    ensure!(is_bounded, "it is larger than {} MiB when it is unpacked", RELEASE_BYTES_MAX >> 20);
    Ok(bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    /// A secret as Helm writes it.
    fn secret(packed: &[u8]) -> Value {
        let release = STANDARD.encode(STANDARD.encode(packed));
        documents::read(
            format!(
                "{{apiVersion: v1, kind: Secret, type: {SECRET_TYPE}, metadata: {{name: \
                 sh.helm.release.v1.shop.v3, namespace: web}}, data: {{release: {release}}}}}"
            )
            .as_bytes(),
        )
        .unwrap()
        .remove(0)
        .tree
    }

    pub(in crate::convert) fn installed(status: &str, manifest: &str) -> Value {
        let release = serde_json::json!({
            "name": "shop", "version": 3, "info": {"status": status}, "manifest": manifest,
        });
        secret(&gzip(release.to_string().as_bytes()))
    }

    const MANIFEST: &str = "---\n# Source: shop/templates/a.yaml\napiVersion: v1\nkind: A\n---\n\
                            apiVersion: v1\nkind: B\n";

    #[test]
    fn releases_are_found_where_helm_keeps_them() {
        let found = release(&installed("deployed", MANIFEST)).unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.objects.len()), ("shop.v3", 2));
        let packed = gzip(br#"{"name":"old","version":1,"manifest":"kind: A"}"#);
        let map = documents::read(
            format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{labels: {{owner: helm}}}}, data: \
                 {{release: {}}}}}",
                STANDARD.encode(packed)
            )
            .as_bytes(),
        );
        let found = release(&map.unwrap()[0].tree).unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.objects.len()), ("old.v1", 1));
        for tree in [
            installed("superseded", MANIFEST),
            documents::read(b"{apiVersion: v1, kind: Secret, data: {release: x}}")
                .unwrap()
                .remove(0)
                .tree,
        ] {
            assert_eq!(release(&tree).unwrap(), None);
        }
    }

    #[test]
    fn an_invalid_release_is_an_error_and_expansion_is_bounded() {
        let zeros = vec![b' '; usize::try_from(RELEASE_BYTES_MAX).unwrap() + 1];
        let deep = "[".repeat(100_000);
        let aliases = format!(
            "a0: &a0 [x]\n{}",
            (1..60).fold(String::new(), |all, i| {
                all + &format!("a{i}: &a{i} [*a{0}, *a{0}, *a{0}, *a{0}]\n", i - 1)
            })
        );
        let bomb = serde_json::json!({"manifest": aliases}).to_string();
        for (tree, why) in [
            (secret(&gzip(&zeros)), "it is larger than 64 MiB when it is unpacked"),
            (secret(&gzip(deep.as_bytes())), "its JSON"),
            (secret(&gzip(bomb.as_bytes())), "its manifest"),
            (secret(&gzip(b"{}")[..12]), "its gzip"),
            (secret(b"nothing"), "its JSON"),
        ] {
            let error = release(&tree).unwrap_err().to_string();
            assert_eq!(error, why);
        }
        let mut odd = secret(b"");
        odd.object_entry("data").insert("release", "%");
        assert_eq!(release(&odd).unwrap_err().to_string(), "its base64");
    }
}
