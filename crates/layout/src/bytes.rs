//! The bytes of built-in kinds: Protobuf messages of the stored version, or JSON.

use pintle_registry::{EtcdForm, ResourceDefinition};
use pintle_schema::{decode, encode, protobuf};
use pintle_store::{Kind as Write, Revision};
use pintle_value::{Value, cbor, json};

use crate::{Kind, MediaType};

/// The path whose raw JSON the schema keeps.
const OWNED_FIELDS: &[&str] = &["metadata", "managedFields", "fieldsV1"];
/// The prefix of encrypted values.
const ENCRYPTED: &[u8] = b"k8s:enc:";
/// Resources whose status is empty in the bytes of a new object: upstream's strategy clears it
/// after defaulting, and defaults the status again when the object is read.
const UNSET_STATUS_WHEN_NEW: &[&str] = &["persistentvolumeclaims"];

impl Kind {
    /// Encodes an object's JSON for etcd.
    pub(crate) fn encode(
        &self,
        value: &[u8],
        media_type: MediaType,
        write: Write,
    ) -> Result<Vec<u8>, String> {
        let mut tree = json::parse_with_raw(value, OWNED_FIELDS).map_err(|why| why.to_string())?;
        remove_unstored(&mut tree)?;
        if write == Write::Created && UNSET_STATUS_WHEN_NEW.contains(&&*self.collection) {
            tree.make_object().insert("status", Value::object());
        }
        let (stored, mut bytes) = (&self.stored, Vec::with_capacity(value.len()));
        match stored.storage.as_ref().map(|storage| storage.etcd.form) {
            Some(EtcdForm::Unserved(version)) => (version.write)(tree, &mut bytes),
            Some(EtcdForm::Json | EtcdForm::Sorted) => {
                encode::write(&stored.schema, stored.ty, &tree, &mut bytes);
            }
            Some(EtcdForm::Protobuf) | None if media_type == MediaType::Json => {
                encode::write(&stored.schema, stored.ty, &tree, &mut bytes);
            }
            Some(EtcdForm::Protobuf) | None => {
                protobuf::encode(&stored.schema, stored.ty, &tree, &mut bytes);
                return Ok(bytes);
            }
        }
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Decodes an object's bytes in etcd to JSON.
    pub(crate) fn decode(&self, bytes: &[u8], revision: Revision) -> Result<Vec<u8>, String> {
        let (version, mut tree) = self.read(bytes)?;
        remove_unstored(&mut tree)?;
        version.set_defaults(&mut tree);
        let stored = &self.stored;
        if version.storage.as_ref().is_some_and(|s| s.conversion.is_some()) {
            version.to_stored(&mut tree);
            conform(stored, &mut tree)?;
        }
        let members = tree.make_object();
        members.insert("kind", stored.kind.clone());
        members.insert("apiVersion", stored.api_version());
        let mut value = Vec::with_capacity(bytes.len() * 2);
        let hole = encode::write_object(&stored.schema, stored.ty, &tree, &mut value);
        if let Some(hole) = hole {
            let digits = revision.to_string();
            value.splice(hole..hole, digits.bytes());
        }
        Ok(value)
    }

    /// Whether bytes have the current version and encoding.
    pub(crate) fn is_current(&self, bytes: &[u8], media_type: MediaType) -> bool {
        let form = self.stored.storage.as_ref().map(|storage| storage.etcd.form);
        let is_message = match form {
            Some(EtcdForm::Protobuf) | None => media_type == MediaType::Protobuf,
            Some(EtcdForm::Unserved(_) | EtcdForm::Json | EtcdForm::Sorted) => false,
        };
        if protobuf::is_message(bytes) != is_message || bytes.starts_with(cbor::MAGIC) {
            return false;
        }
        let version = match is_message {
            true => protobuf::type_meta(bytes).map(|(api_version, _)| api_version).ok(),
            false => {
                text(bytes).ok().and_then(|tree| Some(tree.str_at(&["apiVersion"])?.to_owned()))
            }
        };
        let written = match form {
            Some(EtcdForm::Unserved(version)) => version.api_version.to_owned(),
            _ => self.stored.api_version().to_string(),
        };
        version.is_none_or(|version| version == written)
    }

    /// Decodes an object in the version that its bytes name.
    fn read(&self, bytes: &[u8]) -> Result<(&ResourceDefinition, Value), String> {
        if protobuf::is_message(bytes) {
            let (api_version, kind) = protobuf::type_meta(bytes).map_err(|e| e.to_string())?;
            let version = self.version(&api_version, &kind)?;
            let tree = protobuf::decode(&version.schema, version.ty, bytes);
            return Ok((version, tree.map_err(|error| error.to_string())?));
        }
        let mut tree = text(bytes)?;
        let text = |member: &str| tree.str_at(&[member]).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let form = self.stored.storage.as_ref().map(|storage| storage.etcd.form);
        let version = match form {
            Some(EtcdForm::Unserved(unserved)) if unserved.api_version == api_version => {
                (unserved.read)(&mut tree);
                self.version(&self.stored.api_version(), &kind)?
            }
            _ => self.version(&api_version, &kind)?,
        };
        conform(version, &mut tree)?;
        Ok((version, tree))
    }

    fn version(&self, api_version: &str, kind: &str) -> Result<&ResourceDefinition, String> {
        let is_it =
            |one: &&ResourceDefinition| one.kind == kind && one.api_version() == api_version;
        let removed = || {
            let removed = pintle_kinds::removed_version(api_version, kind)?;
            let storage = removed.storage.as_ref()?;
            (storage.collection == self.collection).then_some(removed)
        };
        let found = self.versions.iter().find(is_it);
        found.or_else(removed).ok_or_else(|| {
            format!("{api_version} {kind} is not known among the versions of {}", self.collection)
        })
    }
}

/// Checks and normalizes an object by the type of its version.
fn conform(version: &ResourceDefinition, tree: &mut Value) -> Result<(), String> {
    let problems = decode::conform(&version.schema, version.ty, tree);
    problems.map(drop).map_err(|error| error.to_string())
}

/// Decodes bytes that are not Protobuf: JSON, or CBOR.
pub(crate) fn text(bytes: &[u8]) -> Result<Value, String> {
    if bytes.starts_with(ENCRYPTED) {
        return Err("the value is encrypted".to_owned());
    }
    if bytes.starts_with(cbor::MAGIC) {
        return cbor::parse(bytes).map_err(|error| error.to_string());
    }
    json::parse_with_raw(bytes, OWNED_FIELDS).map_err(|error| error.to_string())
}

/// Removes `resourceVersion` and `selfLink`, which upstream omits from the bytes
/// (`apiserver/pkg/storage/api_object_versioner.go`).
pub(crate) fn remove_unstored(object: &mut Value) -> Result<(), String> {
    let members = object.as_object_mut().ok_or("the value is not an object")?;
    if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
        metadata.remove("resourceVersion");
        metadata.remove("selfLink");
    }
    Ok(())
}
