//! Runs scripts: replaces variables, sends requests, checks responses, follows watches.
//!
//! Each script has its own connection, its own variables and, if it mentions `$ns`, its own
//! namespace, so scripts can run in parallel on any server. The runner only sleeps between two
//! attempts of a step with `within` or two checks whether an object is settled, and everything has
//! a deadline.

mod histories;
mod watches;

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
use crate::watch::Watch;
pub(crate) use histories::Histories;

/// How long an event or the end of a watch may take, unless the script says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a response may take in a comparison, where a missing response is a result, too.
const TIMEOUT_OF_COMPARISON: Duration = Duration::from_secs(20);
/// Scripts state the times of `within` for an idle machine. A step may take this many times as
/// long, because machines can be busy. Only failures wait that long.
const SLACK: u32 = 6;
/// How long a server may take to complete an object.
const SETTLING: Duration = Duration::from_secs(5);
/// The pause between two tries of a step with `within`.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs one script.
pub(crate) fn run(script: &Script, target: &Target) -> Outcome {
    if let Some(ability) = target.lacks(&script.requires) {
        return Outcome::Skipped(ability.to_owned());
    }
    let mut run = Run::new(target, [("unique".to_owned(), json!(unique()))].into());
    let result = run.begin(script).and_then(|()| run.steps(&script.steps, &Row::new()));
    run.finish(script);
    match result {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// Runs one script and records the responses without checking them; `$unique` is among the
/// variables.
pub(crate) fn listen(script: &Script, target: &Target, variables: Row) -> Vec<Exchange> {
    if target.lacks(&script.requires).is_some() {
        return Vec::new();
    }
    let mut run = Run { exchanges: Some(Vec::new()), ..Run::new(target, variables) };
    let result = run.begin(script).and_then(|()| run.steps(&script.steps, &Row::new()));
    run.finish(script);
    let mut exchanges = run.exchanges.take().unwrap_or_default();
    if let Err(error) = result {
        exchanges.push(Exchange {
            question: "the script".to_owned(),
            answer: Err(format!("{error:#}")),
        });
    }
    exchanges
}

/// Sends requests one after the other, in their own namespace, `$ns`. After each create, waits for
/// the `settled` state of the object, because the server itself may write to it.
pub(crate) fn ask(
    questions: &[(String, Request)],
    settled: &Value,
    target: &Target,
    variables: Row,
) -> Vec<Exchange> {
    let mut run = Run::new(target, variables);
    let begun = run.begin_namespace();
    let exchanges = questions.iter().map(|(question, request)| {
        let answer = begun.as_ref().map_err(|error| format!("{error:#}"));
        let answer = answer.and_then(|()| run.send(request, false).map_err(|e| format!("{e:#}")));
        if let Ok(answer) = &answer
            && answer.status() == 201
            && !request.target.contains("dryRun")
        {
            run.settle(&request.target, &answer.body(), settled);
        }
        Exchange { question: question.clone(), answer }
    });
    let exchanges = exchanges.collect();
    run.leave_namespace();
    exchanges
}

/// A request, and its response.
pub(crate) struct Exchange {
    pub(crate) question: String,
    pub(crate) answer: Result<Answer, String>,
}

struct Run<'a> {
    target: &'a Target,
    connection: Option<Connection>,
    /// Saved values, and the names of this run.
    variables: Row,
    watches: BTreeMap<String, Watch>,
    /// The responses so far, if the run records them.
    exchanges: Option<Vec<Exchange>>,
}

/// The variables of a row, which shadow those of the run.
struct Scoped<'a> {
    row: &'a Row,
    variables: &'a Row,
}

impl Scope for Scoped<'_> {
    fn get(&self, name: &str) -> Result<Value> {
        self.row.get(name).cloned().map_or_else(|| Scope::get(self.variables, name), Ok)
    }
}

/// The namespace of a run.
pub(crate) fn namespace(unique: &str) -> String {
    format!("script-{unique}")
}

impl<'a> Run<'a> {
    const fn new(target: &'a Target, variables: Row) -> Self {
        Self { target, connection: None, variables, watches: BTreeMap::new(), exchanges: None }
    }

    fn begin(&mut self, script: &Script) -> Result<()> {
        let is_wanted =
            self.variables.contains_key("ns") || format!("{:?}", script.steps).contains("$ns");
        if is_wanted { self.begin_namespace() } else { Ok(()) }
    }

    fn begin_namespace(&mut self) -> Result<()> {
        let unique = Scope::get(&self.variables, "unique")?;
        let namespace = namespace(&variables::as_text(&unique));
        let object = json!({"metadata": {"name": namespace}});
        self.prepare("/api/v1/namespaces", &object, &[201])?;
        // Pods are refused until a controller has created this account; creating it here avoids the
        // race.
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

    /// Waits a limited time until a new object is in the `settled` state.
    fn settle(&mut self, collection: &str, object: &Value, settled: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let request = request::read(self.target, &format!("{collection}/{name}"));
        let deadline = Instant::now() + SETTLING;
        let is_settled =
            |answer: &Answer| differences(settled, Some(&answer.body()), Extent::Subset).is_empty();
        while !self.send(&request, false).is_ok_and(|answer| is_settled(&answer))
            && Instant::now() < deadline
        {
            std::thread::sleep(PAUSE);
        }
    }

    /// Closes the watches, and deletes the script's `cleanup` paths and namespace. Errors are
    /// ignored, because objects may be deleted already.
    fn finish(&mut self, script: &Script) {
        self.watches.clear();
        let paths =
            script.cleanup.iter().map(|path| variables::fill_text(path, &self.variables).ok());
        let paths: Vec<String> = paths.flatten().collect();
        for path in paths {
            let _ = self.send(&request::delete(self.target, &path), false);
        }
        self.leave_namespace();
    }

    fn leave_namespace(&mut self) {
        if let Some(namespace) = self.variables.get("ns").map(variables::as_text) {
            let path = format!("/api/v1/namespaces/{namespace}");
            let _ = self.send(&request::delete(self.target, &path), false);
        }
    }

    fn steps(&mut self, steps: &[Spanned<Step>], row: &Row) -> Result<()> {
        for step in steps {
            let Err(error) = self.step(&step.value, row) else { continue };
            let line = step.referenced.line();
            if let Some(exchanges) = &mut self.exchanges {
                let answer = Err(format!("{error:#}"));
                exchanges.push(Exchange { question: format!("line {line}"), answer });
                continue; // later steps may still be informative
            }
            let ids = step.value.ids.join(" ");
            bail!("line {line} {ids}\n{error:#}");
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, outer: &Row) -> Result<()> {
        if self.target.lacks(&step.requires).is_some() {
            return Ok(());
        }
        let one = [Row::new()];
        let rows = if step.rows.is_empty() { &one[..] } else { &step.rows };
        let mut failures = Vec::new(); // a failed row does not prevent the next one
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
        let slack = if self.exchanges.is_some() { 1 } else { SLACK };
        let limit = step.within.as_deref().map(duration).transpose()?.map(|limit| limit * slack);
        let deadline = Instant::now() + limit.unwrap_or(TIMEOUT);
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
        if self.exchanges.is_some() {
            return self.hear(step, row, limit.map(|_| deadline));
        }
        loop {
            let result = self.converse(step, row);
            if result.is_ok() || limit.is_none() || Instant::now() >= deadline {
                return result;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Sends the step's request and records the response; with `within`, the first that is as
    /// expected, or the last before the deadline.
    fn hear(&mut self, step: &Step, row: &Row, deadline: Option<Instant>) -> Result<()> {
        let scope = Scoped { row, variables: &self.variables };
        let request = request::build(step, self.target, &scope)?;
        let expectation = Expectation::of(step, &request.method, &scope)?;
        let answer = loop {
            let answer = self.answer(step, &request);
            let is_good = answer.as_ref().is_ok_and(|answer| expectation.check(answer).is_ok());
            if is_good || deadline.is_none_or(|deadline| Instant::now() >= deadline) {
                break answer;
            }
            std::thread::sleep(PAUSE);
        };
        if let Ok(answer) = &answer {
            for (name, path) in &step.save {
                if let Ok(value) = answer.find(path) {
                    self.variables.insert(name.clone(), value);
                }
            }
        }
        let question = request::in_words(&request);
        let answer = answer.map_err(|error| format!("{error:#}"));
        self.exchanges.get_or_insert_default().push(Exchange { question, answer });
        Ok(())
    }

    fn answer(&mut self, step: &Step, request: &Request) -> Result<Answer> {
        match step.take {
            Some(count) => self.take(request, step.is_a_stranger(), count),
            None => self.send(request, step.is_a_stranger()),
        }
    }

    fn fill(&self, text: &str, row: &Row) -> Result<String> {
        variables::fill_text(text, &Scoped { row, variables: &self.variables })
    }

    /// Sends the step's request and checks the response.
    fn converse(&mut self, step: &Step, row: &Row) -> Result<()> {
        let scope = Scoped { row, variables: &self.variables };
        let request = request::build(step, self.target, &scope)?;
        let expectation = Expectation::of(step, &request.method, &scope)?;
        let answer = self.answer(step, &request)?;
        expectation.check(&answer).map_err(|error| self.explain(&request, &answer, &error))?;
        self.save(step, &answer).map_err(|error| self.explain(&request, &answer, &error))
    }

    fn explain(&self, request: &Request, answer: &Answer, error: &anyhow::Error) -> anyhow::Error {
        anyhow!("{error:#}\n{}\n{}", request::curl(self.target, request), answer.show())
    }

    fn save(&mut self, step: &Step, answer: &Answer) -> Result<()> {
        for (name, path) in &step.save {
            self.variables.insert(name.clone(), answer.find(path)?);
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
        if self.exchanges.is_some() {
            connection.set_read_timeout(Some(TIMEOUT_OF_COMPARISON))?;
        }
        let response = connection
            .exchange(request)
            .map_err(|error| anyhow!("{error:#}\n{}", request::curl(self.target, request)))?;
        self.connection = Some(connection);
        Answer::read(response)
    }

    /// Sends the same request on many connections at once and counts the responses.
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
}

/// Parses a duration: `10s` or `250ms`.
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
