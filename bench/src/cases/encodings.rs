//! Lists and watches in each encoding: the size of a list, the time of the first list and of
//! repeated ones, the delay of events, and the server's processor time.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::watches::{Encoding, Form, deliveries};
use super::{Extent, Meter, Namespace, fill};
use crate::load::{Client, Worker, run};
use crate::objects::{Sample, config_map_by_label};
use crate::process::Running;
use crate::report::Report;
use crate::server::Server;

/// The representations of lists, by name.
const LISTS: [(&str, &str); 7] = [
    ("JSON", "Accept: application/json\r\n"),
    ("Protobuf", "Accept: application/vnd.kubernetes.protobuf\r\n"),
    ("CBOR", "Accept: application/cbor\r\n"),
    ("YAML", "Accept: application/yaml\r\n"),
    ("Table", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1\r\n"),
    ("metadata", "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\r\n"),
    (
        "metadata in Protobuf",
        "Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;\
         g=meta.k8s.io;v=v1\r\n",
    ),
];

/// The representations of watches. There are no watches in YAML.
const WATCHES: [Form; 6] = [
    Form::JSON,
    Form {
        name: "Protobuf",
        accept: "Accept: application/vnd.kubernetes.protobuf;stream=watch\r\n",
        encoding: Encoding::Protobuf,
    },
    Form { name: "CBOR", accept: "Accept: application/cbor\r\n", encoding: Encoding::Cbor },
    Form {
        name: "Table",
        accept: "Accept: application/json;as=Table;g=meta.k8s.io;v=v1\r\n",
        encoding: Encoding::Json,
    },
    Form {
        name: "metadata",
        accept: "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1\r\n",
        encoding: Encoding::Json,
    },
    Form {
        name: "metadata in Protobuf",
        accept: "Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;\
                 g=meta.k8s.io;v=v1\r\n",
        encoding: Encoding::Protobuf,
    },
];

/// The status of a server that lacks a representation: CBOR is behind a feature gate.
const NOT_ACCEPTABLE: u16 = 406;

/// The number of concurrent watchers.
const WATCHERS: usize = 100;

/// Measures in its own namespaces. The processor time is only known for a server that the benchmark
/// started.
pub async fn measure(
    server: &Server,
    running: Option<&Running>,
    sample: &Sample,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let unique = std::process::id();
    let namespace = Namespace::create(server, &format!("bench-{unique}-encodings")).await?;
    let result = lists(&namespace, running, sample, extent, report).await;
    namespace.delete().await?;
    result?;
    let namespace = Namespace::create(server, &format!("bench-{unique}-events")).await?;
    let result = watches(&namespace, running, extent, report).await;
    namespace.delete().await?;
    result
}

async fn lists(
    namespace: &Namespace,
    running: Option<&Running>,
    sample: &Sample,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let Some(size) = extent.list_sizes.first() else { return Ok(()) };
    fill(namespace, sample, *size, &Arc::new(AtomicU64::new(0))).await?;
    let path = namespace.path(sample.resource);
    for (form, accept) in LISTS {
        let call = || namespace.server.call_with("GET", &path, "", accept, "");
        let mut connection = namespace.server.connect().await?;
        let begun = Instant::now();
        let first = connection.exchange(call().bytes(), None).await?;
        if first.status == NOT_ACCEPTABLE {
            continue;
        }
        anyhow::ensure!(first.status == 200, "a list as {form} was answered {}", first.status);
        let name = format!("list {size} pods, {form}");
        report.add(format!("{name}, size"), first.body_bytes as f64 / 1e6, "MB");
        report.add(format!("{name}, first"), millis(begun.elapsed()), "ms");
        let meter = Meter::start(running)?;
        let clients = Client::connect(&namespace.server, 1, false).await?;
        let workers = clients.into_iter().map(|client| Worker {
            client,
            call: call(),
            next: Box::new(|_| true),
        });
        let figures = run(workers.collect(), extent.time).await?;
        report.add_bytes(format!("{name}, repeated"), figures.body_rate_mb(), &figures);
        meter.add(report, &name, figures.count)?;
    }
    Ok(())
}

async fn watches(
    namespace: &Namespace,
    running: Option<&Running>,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let sample = config_map_by_label();
    fill(namespace, &sample, 4, &Arc::new(AtomicU64::new(0))).await?;
    let path = namespace.path(sample.resource);
    for form in WATCHES {
        let mut connection = namespace.server.connect().await?;
        let list = namespace.server.call_with("GET", &path, "", form.accept, "");
        if connection.exchange(list.bytes(), None).await?.status == NOT_ACCEPTABLE {
            continue;
        }
        let meter = Meter::start(running)?;
        let figures = deliveries(namespace, &sample, form, WATCHERS, extent.time, None).await?;
        let name = format!("delivery to {WATCHERS} watchers, {}", form.name);
        report.add_rate(&name, &figures);
        meter.add(report, &name, figures.count)?;
    }
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
