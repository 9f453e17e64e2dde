//! Watches of a run: opens them, checks their events, reads the beginning of a stream.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};

use super::{Run, Scoped};
use crate::answer::{Answer, Expectation};
use crate::http::{Request, Response};
use crate::matching::{Extent, differences};
use crate::request;
use crate::script::{Row, Step};
use crate::variables::fill;
use crate::watch::{Framing, Watch};

/// How long a stream may be silent before that counts as the end.
const SILENCE: Duration = Duration::from_secs(2);

impl Run<'_> {
    /// The first events of a stream.
    pub(super) fn take(&self, request: &Request, anonymous: bool, count: usize) -> Result<Answer> {
        let mut connection = self.target.connect(anonymous)?;
        let head = connection.start(request)?;
        if head.status != 200 {
            let mut body = Vec::new();
            while let Some(piece) = connection.next_piece()? {
                body.extend(piece);
            }
            return Answer::read(Response { head, body });
        }
        let framing = Framing::of(head.get("content-type").unwrap_or_default());
        let watch = Watch::read(connection, framing)?;
        let mut events = Vec::new();
        while events.len() < count {
            match watch.next(Instant::now() + SILENCE) {
                Ok(Some(event)) => {
                    let mark =
                        &event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
                    let is_last = mark == "true";
                    events.push(event);
                    if is_last {
                        break;
                    }
                }
                Ok(None) => {
                    events.push(json!("the end"));
                    break;
                }
                Err(error) => {
                    events.push(json!(error.to_string()));
                    break;
                }
            }
        }
        Ok(Answer::of_events(head, events))
    }

    pub(super) fn open_watch(&mut self, name: &str, step: &Step, row: &Row) -> Result<()> {
        let scope = Scoped { row, variables: &self.variables };
        let request = request::build(step, self.target, &scope)?;
        let expectation = Expectation::of(step, &request.method, &scope)?;
        let mut connection = self.target.connect(step.is_a_stranger())?;
        let head = connection.start(&request)?;
        if head.status >= 300 {
            let mut body = Vec::new();
            while let Some(piece) = connection.next_piece()? {
                body.extend(piece);
            }
            let answer = Answer::read(crate::http::Response { head, body })?;
            return expectation
                .check(&answer)
                .map_err(|error| self.explain(&request, &answer, &error));
        }
        let answer = Answer::read(crate::http::Response { head, body: Vec::new() })?;
        expectation.check(&answer).map_err(|error| self.explain(&request, &answer, &error))?;
        let media = answer.find("header content-type").ok();
        let framing = Framing::of(media.as_ref().and_then(Value::as_str).unwrap_or_default());
        self.watches.insert(name.to_owned(), Watch::read(connection, framing)?);
        Ok(())
    }

    /// The next event of a watch whose type the step does not ignore.
    fn event(&self, name: &str, step: &Step, deadline: Instant) -> Result<Option<Value>> {
        let watch = self.watches.get(name).ok_or_else(|| anyhow!("no watch {name}"))?;
        loop {
            let event = watch.next(deadline)?;
            let kind = event.as_ref().and_then(|event| event["type"].as_str());
            if !kind.is_some_and(|kind| step.ignore.iter().any(|ignored| ignored == kind)) {
                return Ok(event);
            }
        }
    }

    pub(super) fn expect_events(
        &mut self,
        name: &str,
        step: &Step,
        row: &Row,
        deadline: Instant,
    ) -> Result<()> {
        let mut expected = Vec::new();
        for event in &step.next {
            let scope = Scoped { row, variables: &self.variables };
            for (kind, object) in event {
                let object = if object.is_null() { json!({}) } else { fill(object, &scope)? };
                expected.push(json!({"type": kind, "object": object}));
            }
        }
        let mut last = Value::Null;
        while !expected.is_empty() {
            let first = &expected[0];
            let event = self
                .event(name, step, deadline)
                .and_then(|event| event.ok_or_else(|| anyhow!("the watch ended")))
                .map_err(|error| anyhow!("{error:#}\nwhile waiting for {first}"))?;
            let fits = |wanted: &Value| differences(wanted, Some(&event), Extent::Subset);
            let found = match step.unordered {
                true => expected.iter().position(|wanted| fits(wanted).is_empty()),
                false => fits(first).is_empty().then_some(0),
            };
            let Some(index) = found else {
                bail!("{}\nthe event was {event:#}", fits(first).join("\n"));
            };
            expected.remove(index);
            last = event;
        }
        self.save(step, &Answer::of_event(last))
    }

    pub(super) fn expect_end(&mut self, name: &str, step: &Step, deadline: Instant) -> Result<()> {
        if let Some(event) = self.event(name, step, deadline)? {
            bail!("expected the watch to end, got {event:#}");
        }
        self.watches.remove(name);
        Ok(())
    }
}
