//! Many CustomResourceDefinitions: the memory of each, the time until a new one is served, and
//! their effect on discovery, OpenAPI and the start.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::Value;

use crate::process::{Program, Running};
use crate::report::Report;
use crate::server::{Connection, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The number of definitions in a group.
const PER_GROUP: usize = 4;
/// The number of additional definitions, to measure the time until they are served.
const LATE: usize = 10;
/// The pause before the memory is read.
const REST: Duration = Duration::from_secs(5);
/// Each document is read twice: the server computes it for the first read.
const READS: [&str; 2] = ["first", "again"];

const AGGREGATED: &str =
    "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n";

/// A definition that is copied.
struct Model(Value);

/// A copy of a definition.
struct Definition {
    body: String,
    /// The path of its objects.
    path: String,
}

impl Model {
    fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let model: Value = serde_saphyr::from_str(&text)
            .map_err(|error| anyhow!("{}: {error}", path.display()))?;
        ensure!(model["kind"] == "CustomResourceDefinition", "{} is another kind", path.display());
        Ok(Self(model))
    }

    /// A copy under other names.
    fn numbered(&self, number: usize) -> Definition {
        let mut object = self.0.clone();
        let group = format!("group{}.bench.example.com", number / PER_GROUP);
        let names = &mut object["spec"]["names"];
        let name = |names: &Value, key: &str| names[key].as_str().unwrap_or("thing").to_owned();
        let (plural, kind) = (name(names, "plural"), name(names, "kind"));
        let plural = format!("{plural}{number}");
        *names = serde_json::json!({"plural": plural, "kind": format!("{kind}{number}")});
        object["spec"]["group"] = group.clone().into();
        object["metadata"] = serde_json::json!({"name": format!("{plural}.{group}")});
        let versions = object["spec"]["versions"].as_array();
        let version = versions.into_iter().flatten().find(|version| version["served"] == true);
        let version = version.map_or("v1", |v| v["name"].as_str().unwrap_or("v1"));
        Definition { path: format!("/apis/{group}/{version}/{plural}"), body: object.to_string() }
    }
}

/// Measures with `count` definitions, which are copies of the models in turn. The server must be
/// empty.
pub async fn measure(
    program: &Program,
    models: &[impl AsRef<Path>],
    count: usize,
    report: &mut Report,
) -> Result<()> {
    let models: Result<Vec<_>> = models.iter().map(|path| Model::read(path.as_ref())).collect();
    let models = models?;
    ensure!(!models.is_empty(), "--definition names no file");
    let number = |number: usize| models[number % models.len()].numbered(number);
    // Restarts once, because a first start creates files that later ones find.
    program.start().await?.stop().await?;
    let running = program.start().await?;
    tokio::time::sleep(REST).await;
    let before = running.memory_bytes()?;
    let began = Instant::now();
    let mut bytes = 0;
    for one in (0..count).map(number) {
        bytes += one.body.len();
        running.server.ask("POST", DEFINITIONS, &one.body, &[]).await?;
    }
    report.add(format!("create {count} definitions"), began.elapsed().as_secs_f64(), "s");
    report.add("bytes of a definition", bytes as f64 / count as f64 / 1e3, "KB");
    served(&running.server, (count..count + LATE).map(number), report).await?;
    running.stop().await?;

    let running = program.start().await?;
    report.add("restart with definitions", running.ready_after.as_secs_f64() * 1e3, "ms");
    tokio::time::sleep(REST).await;
    let beyond = running.memory_bytes()?.saturating_sub(before).saturating_sub(bytes as u64);
    report.add("memory beyond the text of each", beyond as f64 / count as f64 / 1e3, "KB");
    documents(&running, report).await?;
    running.stop().await
}

/// Measures the time from the create of a definition to the first list of its objects.
async fn served(
    server: &Server,
    definitions: impl Iterator<Item = Definition>,
    report: &mut Report,
) -> Result<()> {
    let mut connection = server.connect().await?;
    let mut times = Vec::new();
    for one in definitions {
        let create = server.call("POST", DEFINITIONS, "application/json", &one.body);
        let list = server.call("GET", &one.path, "application/json", "");
        let began = Instant::now();
        let created = connection.exchange(create.bytes(), None).await?;
        ensure!(created.status == 201, "a definition was answered {}", created.status);
        while connection.exchange(list.bytes(), None).await?.status != 200 {}
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let milliseconds = |at: usize| times[at].as_secs_f64() * 1e3;
    report.add("a new definition served, median", milliseconds(times.len() / 2), "ms");
    report.add("a new definition served, slowest", milliseconds(times.len() - 1), "ms");
    Ok(())
}

/// Measures reads of the documents that clients read first.
async fn documents(running: &Running, report: &mut Report) -> Result<()> {
    let mut connection = running.server.connect().await?;
    let documents = [
        ("discovery", "/apis", AGGREGATED),
        ("OpenAPI v3 index", "/openapi/v3", ""),
        ("OpenAPI v2", "/openapi/v2", ""),
    ];
    for (name, path, headers) in documents {
        for time in READS {
            let took = read(running, &mut connection, path, headers).await?;
            report.add(format!("{name}, {time}"), took.as_secs_f64() * 1e3, "ms");
        }
    }
    Ok(())
}

async fn read(
    running: &Running,
    connection: &mut Connection,
    path: &str,
    headers: &'static str,
) -> Result<Duration> {
    let call = running.server.call_with("GET", path, "", headers, "");
    let began = Instant::now();
    let answer = connection.exchange(call.bytes(), None).await?;
    ensure!(answer.status == 200, "{path} was answered {}", answer.status);
    Ok(began.elapsed())
}
