//! Concurrent writers, and the events that watches report.
//!
//! The order of the writers' requests differs in every run. Each writer has its own objects, so the
//! history of one object is the same in all runs: events are compared object by object.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};

use super::{Exchange, Run, TIMEOUT_OF_COMPARISON};
use crate::answer::Answer;
use crate::http::{Head, Request};
use crate::script::Row;
use crate::target::Target;
use crate::watch::{Framing, Watch};

/// The writers' requests, and the watches that follow them.
pub(crate) struct Histories {
    /// The path of the objects.
    pub(crate) collection: String,
    /// Each writer's requests, with their names.
    pub(crate) writers: Vec<Vec<(String, Request)>>,
    /// The last write, which every watch must see.
    pub(crate) last: Request,
    /// Names of watches, the queries by which they select, and the media types that they accept.
    pub(crate) watches: Vec<(&'static str, &'static str, &'static str)>,
}

impl Histories {
    /// The responses to the writers, and the history of each object in each watch: in watches that
    /// are open from the beginning, and in those that are opened after the last write and read the
    /// same events again.
    pub(crate) fn listen(&self, target: &Target, variables: Row) -> Vec<Exchange> {
        let mut run = Run::new(target, variables.clone());
        let begun = run.begin_namespace();
        let exchanges = begun.and_then(|()| self.responses(&mut run, &variables));
        run.leave_namespace();
        exchanges.unwrap_or_else(|error| {
            vec![Exchange {
                question: "the histories".to_owned(),
                answer: Err(format!("{error:#}")),
            }]
        })
    }

    fn responses(&self, run: &mut Run<'_>, variables: &Row) -> Result<Vec<Exchange>> {
        let begin = run.send(&get(&self.collection, "application/json"), false)?;
        let begin = begin.find("metadata.resourceVersion")?;
        let begin = begin.as_str().context("a list has a version")?;
        let early = self.open(run.target, "early", begin)?;
        let mut exchanges = self.written(run.target, variables)?;
        run.send(&self.last, false)?;
        let late = self.open(run.target, "late", begin)?;
        for (name, watch) in early.into_iter().chain(late) {
            exchanges.extend(history(&name, &watch)?);
        }
        Ok(exchanges)
    }

    fn open(&self, target: &Target, when: &str, begin: &str) -> Result<Vec<(String, Watch)>> {
        let open = |(name, query, media): &(&str, &str, &str)| {
            let path = format!("{}?watch=1&resourceVersion={begin}{query}", self.collection);
            let mut connection = target.connect(false)?;
            let head = connection.start(&get(&path, media))?;
            if head.status != 200 {
                bail!("a watch was answered with {}", head.status);
            }
            let framing = Framing::of(head.get("content-type").unwrap_or_default());
            Ok((format!("{when}, {name}"), Watch::read(connection, framing)?))
        };
        self.watches.iter().map(open).collect()
    }

    /// Runs all writers at once; returns their responses one writer after the other.
    fn written(&self, target: &Target, variables: &Row) -> Result<Vec<Exchange>> {
        std::thread::scope(|scope| {
            let write = |requests: &[(String, Request)]| {
                let mut run = Run::new(target, variables.clone());
                let ask = |(question, request): &(String, Request)| {
                    let answer = run.send(request, false).map_err(|error| format!("{error:#}"));
                    Exchange { question: question.clone(), answer }
                };
                requests.iter().map(ask).collect::<Vec<_>>()
            };
            let hands: Vec<_> =
                self.writers.iter().map(|requests| scope.spawn(move || write(requests))).collect();
            let exchanges =
                hands.into_iter().map(|hand| hand.join().map_err(|_| anyhow!("a panic")));
            Ok(exchanges.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        })
    }
}

/// The events of each object in a watch, up to the last write; and whether resource versions
/// increase.
fn history(watch_name: &str, watch: &Watch) -> Result<Vec<Exchange>> {
    let mut objects: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let (mut newest, mut in_order, mut is_over) = (0, true, false);
    let deadline = Instant::now() + TIMEOUT_OF_COMPARISON;
    while !is_over {
        let event = watch.next(deadline).with_context(|| watch_name.to_owned())?;
        let event = event.with_context(|| format!("{watch_name}: the watch ended"))?;
        let text = |member: &str| event["object"]["metadata"][member].as_str().unwrap_or_default();
        let version = text("resourceVersion").parse::<u64>().unwrap_or_default();
        in_order &= version > newest || event["type"] == "BOOKMARK" && version == newest;
        newest = version;
        let name = text("name").to_owned();
        is_over = name == Histories::LAST;
        if event["type"] != "BOOKMARK" {
            objects.entry(name).or_default().push(event);
        }
    }
    let exchange = |question: String, events: Vec<Value>| {
        let answer = Ok(Answer::of_events(Head::default(), events));
        Exchange { question, answer }
    };
    let mut responses = vec![exchange(format!("the order of {watch_name}"), vec![json!(in_order)])];
    let history = |(name, events)| exchange(format!("the history of {name}, {watch_name}"), events);
    responses.extend(objects.into_iter().map(history));
    Ok(responses)
}

impl Histories {
    /// The name of the object that is written last.
    pub(crate) const LAST: &str = "last";
}

fn get(path: &str, media: &str) -> Request {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = vec![header("Accept", media), header("User-Agent", "apiscript/1")];
    Request { method: "GET".to_owned(), target: path.to_owned(), headers, body: None }
}
