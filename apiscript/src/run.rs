//! Runs scripts: fills variables, sends requests, compares answers, follows watches.
//!
//! Each script has its own connection, its own variables and, if it mentions `$ns`, a namespace of
//! its own, so scripts run side by side on any server. Nothing here sleeps except between two tries
//! of a step with `within`, and everything has a deadline.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use serde_saphyr::Spanned;

use crate::answer::{Answer, Expectation};
use crate::http::{Connection, Request};
use crate::matching::{Extent, differences};
use crate::report::Outcome;
use crate::request;
use crate::script::{Row, Script, Step};
use crate::target::Target;
use crate::variables::{self, Scope, fill};
use crate::watch::{Framing, Watch};

/// How long an event or the end of a watch may take, where the script doesn't say.
const PATIENCE: Duration = Duration::from_secs(60);
/// Scripts say how long something may take on a machine that does nothing else; on one that does, it may
/// take so many times as long. Only what fails waits for it.
const SLACK: u32 = 6;
/// The pause between two tries of a step with `within`.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs one script.
pub(crate) fn run(script: &Script, target: &Target) -> Outcome {
    if let Some(ability) = target.lacks(&script.requires) {
        return Outcome::Skipped(ability.to_owned());
    }
    let mut run = Run { target, connection: None, variables: Row::new(), watches: BTreeMap::new() };
    let result = run.begin(script).and_then(|()| run.steps(&script.steps, &Row::new()));
    run.finish(script);
    match result {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

struct Run<'a> {
    target: &'a Target,
    connection: Option<Connection>,
    /// What was saved, and the names of this run.
    variables: Row,
    watches: BTreeMap<String, Watch>,
}

/// The variables of a row before those of the run.
struct Scoped<'a> {
    row: &'a Row,
    variables: &'a Row,
}

impl Scope for Scoped<'_> {
    fn get(&self, name: &str) -> Result<Value> {
        self.row.get(name).cloned().map_or_else(|| Scope::get(self.variables, name), Ok)
    }
}

impl Run<'_> {
    fn begin(&mut self, script: &Script) -> Result<()> {
        let unique = unique();
        self.variables.insert("unique".to_owned(), json!(unique));
        if !format!("{:?}", script.steps).contains("$ns") {
            return Ok(());
        }
        let namespace = format!("script-{unique}");
        let object = json!({"metadata": {"name": namespace}});
        self.prepare("/api/v1/namespaces", &object, &[201])?;
        // Pods are refused until a controller has made this account; making it here ends the race.
        let object = json!({"metadata": {"name": "default"}});
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        self.prepare(&path, &object, &[201, 404, 409])?;
        self.variables.insert("ns".to_owned(), json!(namespace));
        Ok(())
    }

    fn prepare(&mut self, path: &str, object: &Value, allowed: &[u16]) -> Result<()> {
        let request = request::create(self.target, path, object);
        let response = self.send(&request, false)?;
        if !allowed.contains(&response.status()) {
            bail!("{}\n{}", request::curl(self.target, &request), response.show());
        }
        Ok(())
    }

    /// Leaves nothing behind. Errors are of no interest: what should be gone may be gone.
    fn finish(&mut self, script: &Script) {
        self.watches.clear();
        let namespace = self
            .variables
            .get("ns")
            .map(|ns| format!("/api/v1/namespaces/{}", variables::as_text(ns)));
        let paths =
            script.cleanup.iter().map(|path| variables::fill_text(path, &self.variables).ok());
        let paths: Vec<String> = paths.chain([namespace]).flatten().collect();
        for path in paths {
            let _ = self.send(&request::delete(self.target, &path), false);
        }
    }

    fn steps(&mut self, steps: &[Spanned<Step>], row: &Row) -> Result<()> {
        for step in steps {
            self.step(&step.value, row).map_err(|error| {
                let line = step.referenced.line();
                let ids = step.value.ids.join(" ");
                anyhow!("line {line} {ids}\n{error:#}")
            })?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, outer: &Row) -> Result<()> {
        if self.target.lacks(&step.requires).is_some() {
            return Ok(());
        }
        let one = [Row::new()];
        let rows = if step.rows.is_empty() { &one[..] } else { &step.rows };
        let mut failures = Vec::new(); // of rows, which stand for themselves
        for row in rows {
            let mut scope = outer.clone();
            for (name, value) in row {
                let value = fill(value, &Scoped { row: outer, variables: &self.variables })?;
                scope.insert(name.clone(), value);
            }
            for count in 1..=step.times.unwrap_or(1) {
                if step.times.is_some() {
                    scope.insert("i".to_owned(), json!(count));
                }
                match self.once(step, &scope) {
                    Ok(()) => {}
                    Err(error) if step.rows.is_empty() => return Err(error),
                    Err(error) => failures.push(format!("with {}\n{error:#}", json!(row))),
                }
            }
        }
        if failures.is_empty() { Ok(()) } else { bail!("{}", failures.join("\n\n")) }
    }

    fn once(&mut self, step: &Step, row: &Row) -> Result<()> {
        let limit = step.within.as_deref().map(duration).transpose()?.map(|limit| limit * SLACK);
        let deadline = Instant::now() + limit.unwrap_or(PATIENCE);
        if !step.steps.is_empty() {
            return self.steps(&step.steps, row);
        }
        if step.compact {
            return self.target.compact();
        }
        if let Some(name) = &step.close {
            let name = self.fill(name, row)?;
            return self
                .watches
                .remove(&name)
                .map(|_| ())
                .ok_or_else(|| anyhow!("no watch {name}"));
        }
        if let Some(name) = &step.end {
            return self.expect_end(&self.fill(name, row)?, step, deadline);
        }
        if let Some(name) = &step.events {
            return self.expect_events(&self.fill(name, row)?, step, row, deadline);
        }
        if let Some(name) = &step.watch {
            return self.open_watch(&self.fill(name, row)?, step, row);
        }
        if let Some(count) = step.race {
            return self.race(step, row, count);
        }
        loop {
            let result = self.converse(step, row);
            if result.is_ok() || limit.is_none() || Instant::now() >= deadline {
                return result;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn fill(&self, text: &str, row: &Row) -> Result<String> {
        variables::fill_text(text, &Scoped { row, variables: &self.variables })
    }

    /// Sends the step's request and compares the answer.
    fn converse(&mut self, step: &Step, row: &Row) -> Result<()> {
        let scope = Scoped { row, variables: &self.variables };
        let request = request::build(step, self.target, &scope)?;
        let expectation = Expectation::of(step, &request.method, &scope)?;
        let answer = self.send(&request, step.is_a_stranger())?;
        expectation.check(&answer).map_err(|error| self.explain(&request, &answer, &error))?;
        self.save(step, &answer).map_err(|error| self.explain(&request, &answer, &error))
    }

    fn explain(&self, request: &Request, answer: &Answer, error: &anyhow::Error) -> anyhow::Error {
        anyhow!("{error:#}\n{}\n{}", request::curl(self.target, request), answer.show())
    }

    fn save(&mut self, step: &Step, answer: &Answer) -> Result<()> {
        for (name, place) in &step.save {
            self.variables.insert(name.clone(), answer.find(place)?);
        }
        Ok(())
    }

    fn send(&mut self, request: &Request, anonymous: bool) -> Result<Answer> {
        if anonymous {
            return Answer::read(self.target.connect(true)?.exchange(request)?);
        }
        let reused = self.connection.take().filter(Connection::is_idle);
        let mut connection = match reused {
            Some(connection) => connection,
            None => self.target.connect(false)?,
        };
        let response = connection
            .exchange(request)
            .map_err(|error| anyhow!("{error:#}\n{}", request::curl(self.target, request)))?;
        self.connection = Some(connection);
        Answer::read(response)
    }

    /// Sends the same request on many connections at once and counts the answers.
    fn race(&mut self, step: &Step, row: &Row, count: usize) -> Result<()> {
        let mut requests = Vec::new();
        for number in 1..=count {
            let mut row = row.clone();
            row.insert("i".to_owned(), json!(number));
            let scope = Scoped { row: &row, variables: &self.variables };
            requests.push((
                request::build(step, self.target, &scope)?,
                self.target.connect(step.is_a_stranger())?,
            ));
        }
        let runners: Vec<_> = requests
            .into_iter()
            .map(|(request, mut connection)| {
                std::thread::spawn(move || connection.exchange(&request))
            })
            .collect();
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        for runner in runners {
            let response = runner.join().map_err(|_| anyhow!("a racing request panicked"))??;
            *outcomes.entry(response.head.status.to_string()).or_default() += 1;
        }
        let expected = step.status.clone().unwrap_or_else(|| json!({"200": count}));
        let found = differences(&expected, Some(&json!(outcomes)), Extent::Exact);
        if found.is_empty() {
            Ok(())
        } else {
            bail!("of {count} racing requests\n{}", found.join("\n"))
        }
    }

    fn open_watch(&mut self, name: &str, step: &Step, row: &Row) -> Result<()> {
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

    /// The next event of a watch that isn't to be passed over.
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

    fn expect_events(
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

    fn expect_end(&mut self, name: &str, step: &Step, deadline: Instant) -> Result<()> {
        if let Some(event) = self.event(name, step, deadline)? {
            bail!("expected the watch to end, got {event:#}");
        }
        self.watches.remove(name);
        Ok(())
    }
}

/// `10s` or `250ms`.
fn duration(text: &str) -> Result<Duration> {
    let number =
        |digits: &str| digits.parse::<u64>().map_err(|_| anyhow!("{text:?} is no duration"));
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => Ok(Duration::from_millis(number(digits)?)),
        (None, Some(digits)) => Ok(Duration::from_secs(number(digits)?)),
        (None, None) => bail!("{text:?} is no duration: write 10s or 250ms"),
    }
}

/// A suffix that no other run has.
fn unique() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = u64::try_from(now.as_micros()).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count:x}", micros & 0xff_ffff_ffff, std::process::id() & 0xffff)
}
