use tokio::sync::mpsc;

use super::*;
use crate::cluster::Cluster;

/// Reports the names that it reconciles.
struct Recorder {
    sources: fn(&Environment) -> Vec<Source>,
    environment: Environment,
    reconciled: mpsc::UnboundedSender<Str>,
}

impl Reconciler for Recorder {
    fn purpose(&self) -> &'static str {
        "record a name"
    }

    fn queue(&self) -> &'static str {
        "recorder"
    }

    fn sources(&self) -> Vec<Source> {
        (self.sources)(&self.environment)
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        self.reconciled.send(name.into()).expect("the test listens");
        Box::pin(std::future::ready(Ok(Progress::Done)))
    }
}

#[tokio::test]
async fn a_source_that_cannot_be_watched_delays_no_other() {
    let cluster = Cluster::start().await;
    let environment = cluster.environment.clone();
    let (reconciled, mut names) = mpsc::unbounded_channel();
    let sources = |environment: &Environment| {
        let source = |name| {
            Source::new(&environment.resource("", "v1", name).expect("a built-in kind"), itself)
        };
        vec![source("secrets").with_fields("metadata.unknown=x"), source("namespaces")]
    };
    let recorder = Recorder { sources, environment: environment.clone(), reconciled };
    let controller = tokio::spawn(async move { work(&environment, &recorder).await });
    for name in ["a", "b"] {
        let object = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        cluster.create("namespaces", &object).await.expect("created");
        loop {
            let next = tokio::time::timeout(DELAY_MAX, names.recv()).await;
            if next.expect("a name in time").expect("the controller runs") == *name {
                break;
            }
        }
    }
    controller.abort();
}
