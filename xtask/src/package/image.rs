//! The container image, as an OCI layout: the program, two users' names, and directories to mount
//! volumes on. There is no shell and no library.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::archive::{Tree, gzip};
use super::{Sources, VERSION};

/// The number of the user and of the group that the program runs as.
const USER: u64 = 65532;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Writes the image of one architecture; images of others stay in the index.
pub(super) fn write(sources: &Sources) -> Result<PathBuf> {
    let layout = Layout { directory: sources.out.join("image") };
    fs::create_dir_all(layout.directory.join("blobs/sha256"))?;
    let tar = root(sources)?.tar()?;
    let layer = layout.add(LAYER, &gzip(&tar)?)?;
    let config = layout.add_json(CONFIG, &config(sources, &digest(&tar)))?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
    });
    let mut manifest = layout.add_json(MANIFEST, &manifest)?;
    manifest["platform"] = platform(sources);
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": VERSION});
    layout.add_to_index(manifest)?;
    Ok(layout.directory)
}

/// The root of the container's file system.
fn root(sources: &Sources) -> Result<Tree> {
    let components = sources.components()?;
    let mut tree = Tree::new(sources.epoch_seconds);
    tree.file("pintle", 0o755, sources.program()?);
    tree.file("etc/passwd", 0o644, sources.file("packaging/image/passwd")?);
    tree.file("etc/group", 0o644, sources.file("packaging/image/group")?);
    tree.owned_directory("data", 0o700, USER);
    tree.directory("tmp", 0o1777);
    let doc = "usr/share/doc/pintle";
    tree.file(&format!("{doc}/LICENSE"), 0o644, sources.file("LICENSE")?);
    tree.file(&format!("{doc}/THIRD-PARTY-LICENSES"), 0o644, components.licence_texts()?);
    tree.file(&format!("{doc}/bill-of-materials.cdx.json"), 0o644, components.bill()?);
    tree.add_parents();
    Ok(tree)
}

/// The image's configuration, such as the command and its user.
fn config(sources: &Sources, diff_id: &str) -> Value {
    let created =
        jiff::Timestamp::from_second(sources.epoch_seconds.try_into().unwrap_or_default())
            .unwrap_or_default()
            .to_string();
    let mut config = platform(sources);
    config["created"] = json!(created);
    config["config"] = json!({
        "User": format!("{USER}:{USER}"),
        "Entrypoint": ["/pintle"],
        "Cmd": ["serve", "--data-dir=/data", "--bind-address=0.0.0.0"],
        "WorkingDir": "/data",
        "ExposedPorts": {"6443/tcp": {}},
        "Volumes": {"/data": {}},
        "StopSignal": "SIGTERM",
        "Labels": {
            "org.opencontainers.image.title": "pintle",
            "org.opencontainers.image.description": "A Kubernetes API server in one binary",
            "org.opencontainers.image.version": VERSION,
            "org.opencontainers.image.licenses": "Apache-2.0",
        },
    });
    config["rootfs"] = json!({"type": "layers", "diff_ids": [diff_id]});
    config["history"] = json!([{"created": created, "created_by": "cargo xtask package image"}]);
    config
}

fn platform(sources: &Sources) -> Value {
    json!({"os": "linux", "architecture": sources.architecture.name})
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// A directory in the form of the OCI image layout.
struct Layout {
    directory: PathBuf,
}

impl Layout {
    /// Adds a blob, and returns its descriptor.
    fn add(&self, media_type: &str, bytes: &[u8]) -> Result<Value> {
        let digest = digest(bytes);
        let name = digest.trim_start_matches("sha256:");
        fs::write(self.directory.join("blobs/sha256").join(name), bytes)?;
        Ok(json!({"mediaType": media_type, "digest": digest, "size": bytes.len()}))
    }

    fn add_json(&self, media_type: &str, value: &Value) -> Result<Value> {
        self.add(media_type, value.to_string().as_bytes())
    }

    /// Puts a manifest in place of the one of the same platform, and drops blobs that nothing names
    /// any more.
    fn add_to_index(&self, manifest: Value) -> Result<()> {
        let path = self.directory.join("index.json");
        let known = fs::read(&path).ok().map(|bytes| serde_json::from_slice::<Value>(&bytes));
        let known = known.transpose()?.unwrap_or_default();
        let others = known["manifests"].as_array().cloned().unwrap_or_default();
        let mut manifests = others;
        manifests.retain(|other| other["platform"] != manifest["platform"]);
        manifests.push(manifest);
        manifests.sort_by_key(|manifest| manifest["platform"]["architecture"].to_string());
        let named = self.named(&manifests)?;
        for entry in fs::read_dir(self.directory.join("blobs/sha256"))? {
            let path = entry?.path();
            if !named.iter().any(|name| path.ends_with(name)) {
                fs::remove_file(path)?;
            }
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        fs::write(path, index.to_string())?;
        fs::write(self.directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        Ok(())
    }

    /// The names of the blobs that manifests need.
    fn named(&self, manifests: &[Value]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for descriptor in manifests {
            let name = file_name(descriptor);
            let bytes = fs::read(Path::new(&self.directory).join("blobs/sha256").join(&name))?;
            let manifest: Value = serde_json::from_slice(&bytes)?;
            names.push(name);
            names.push(file_name(&manifest["config"]));
            names.extend(manifest["layers"].as_array().into_iter().flatten().map(file_name));
        }
        Ok(names)
    }
}

fn file_name(descriptor: &Value) -> String {
    descriptor["digest"].as_str().unwrap_or_default().trim_start_matches("sha256:").to_owned()
}
