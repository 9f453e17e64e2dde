//! Reads the objects of a running server with kubectl, which supports every kind of login that a
//! kubeconfig can describe.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use pintle_value::{Value, json};

use super::helm;

/// The number of objects in a page of a list.
const PAGE_OBJECTS: usize = 250;
/// The limit of a response; a page of objects has some megabytes.
const RESPONSE_BYTES_MAX: u64 = 512 << 20;
/// The limit of kubectl's standard error.
const ERROR_BYTES_MAX: u64 = 64 << 10;

/// The server, by the flags of kubectl.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

/// A collection of objects.
#[derive(Debug, PartialEq)]
pub(super) struct Collection {
    /// The path in the API.
    pub path: String,
    pub api_version: String,
    pub kind: String,
}

impl Server {
    /// Every collection that supports list, of each group in its preferred version.
    pub(super) fn collections(&self) -> Result<Vec<Collection>> {
        let mut all = collections("/api/v1", &self.get("/api/v1")?);
        let groups = self.get("/apis")?;
        for group in groups.get("groups").and_then(Value::as_array).unwrap_or_default() {
            if let Some(version) = group.str_at(&["preferredVersion", "groupVersion"]) {
                let path = format!("/apis/{version}");
                all.extend(collections(&path, &self.get(&path)?));
            }
        }
        Ok(all)
    }

    /// Calls `take` with each object of a collection, page by page.
    pub(super) fn each(
        &self,
        collection: &Collection,
        take: &mut dyn FnMut(Value) -> Result<()>,
    ) -> Result<()> {
        // Other secrets are not read, because they do not concern the check.
        let selected = match (collection.api_version.as_str(), collection.kind.as_str()) {
            ("v1", "Secret") => {
                format!("&fieldSelector=type%3D{}", helm::SECRET_TYPE.replace('/', "%2F"))
            }
            _ => String::new(),
        };
        let first = format!("{}?limit={PAGE_OBJECTS}{selected}", collection.path);
        let mut path = first.clone();
        loop {
            let mut page = self.get(&path)?;
            let next = page.str_at(&["metadata", "continue"]).unwrap_or_default();
            let next = (!next.is_empty()).then(|| format!("{first}&continue={}", escaped(next)));
            if let Some(Value::Array(items)) = page.make_object().remove("items") {
                for mut item in items {
                    // The items of a list have no apiVersion and kind.
                    let members = item.make_object();
                    members.insert("apiVersion", collection.api_version.as_str());
                    members.insert("kind", collection.kind.as_str());
                    take(item)?;
                }
            }
            match next {
                Some(next) => path = next,
                None => return Ok(()),
            }
        }
    }

    /// The response to a get of a path.
    fn get(&self, path: &str) -> Result<Value> {
        let mut kubectl = Command::new("kubectl");
        if let Some(file) = &self.kubeconfig {
            kubectl.arg("--kubeconfig").arg(file);
        }
        if let Some(context) = &self.context {
            kubectl.arg("--context").arg(context);
        }
        kubectl.args(["--request-timeout", "60s", "get", "--raw", path]);
        kubectl.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = kubectl.spawn().context("cannot start kubectl, which reads the server")?;
        let out = child.stdout.take().context("kubectl's output")?;
        let errors = child.stderr.take().context("kubectl's output")?;
        // Both are read concurrently, so that a full pipe does not block kubectl.
        let (bytes, errors) = std::thread::scope(|scope| {
            let errors = scope.spawn(|| bounded(errors, ERROR_BYTES_MAX));
            let bytes = bounded(out, RESPONSE_BYTES_MAX);
            (bytes, errors.join().unwrap_or_else(|_| Ok(Vec::new())))
        });
        let (bytes, errors) = (bytes?, errors?);
        let status = child.wait().context("kubectl")?;
        if u64::try_from(bytes.len()).is_ok_and(|bytes| bytes > RESPONSE_BYTES_MAX) {
            bail!("{path}: the response is larger than {} MiB", RESPONSE_BYTES_MAX >> 20);
        }
        if !status.success() {
            bail!("{path}: {}", String::from_utf8_lossy(&errors).trim());
        }
        json::parse(&bytes).with_context(|| format!("{path}: the response is not JSON"))
    }
}

/// Reads up to one byte more than the limit. A program that writes more ends with an error when the
/// pipe is closed.
fn bounded(source: impl Read, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(bytes_max + 1).read_to_end(&mut bytes).context("kubectl's output")?;
    Ok(bytes)
}

/// The collections of a group version that support list.
fn collections(path: &str, resources: &Value) -> Vec<Collection> {
    let api_version = resources.str_at(&["groupVersion"]).unwrap_or_default();
    let all = resources.get("resources").and_then(Value::as_array).unwrap_or_default();
    let listed = all.iter().filter(|resource| {
        let verbs = resource.get("verbs").and_then(Value::as_array).unwrap_or_default();
        verbs.iter().any(|verb| verb.as_str() == Some("list"))
    });
    let collection = |resource: &Value| {
        Some(Collection {
            path: format!("{path}/{}", resource.str_at(&["name"])?),
            api_version: api_version.to_owned(),
            kind: resource.str_at(&["kind"])?.to_owned(),
        })
    };
    listed.filter_map(collection).collect()
}

/// Escapes a value of a query.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_that_support_list_are_found() {
        let resources = br#"{"groupVersion":"apps/v1","resources":[
            {"name":"deployments","kind":"Deployment","verbs":["get","list"]},
            {"name":"deployments/scale","kind":"Scale","verbs":["get"]}]}"#;
        let found = collections("/apis/apps/v1", &json::parse(resources).unwrap());
        let expected = Collection {
            path: "/apis/apps/v1/deployments".to_owned(),
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
        };
        assert_eq!(found, [expected]);
        assert_eq!(escaped("eyJ2=+/"), "eyJ2%3D%2B%2F");
    }
}
