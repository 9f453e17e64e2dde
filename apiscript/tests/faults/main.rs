//! Faults between servers and etcd, and of etcd itself: there is one history, and responses are
//! clear.
//!
//! `cargo test -p apiscript --test faults -- --ignored` injects faults into an etcd of three
//! members for minutes; `--nocapture` prints the result.

mod proxy;

use std::io::{Write as _, stdout};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use apiscript::Target;
use apiscript::http::Request;
use apiscript::kubeconfig::Cluster;
use apiscript::replicas::{self, Campaign, Summary};
use pintle_testing::etcd::{Member, new_part};
use pintle_testing::{Config, Etcd, TestServer};
use proxy::{Proxy, Way};
use serde_json::{Value, json};

/// How long a fault lasts, and the pause after it.
const BROKEN: Duration = Duration::from_millis(400);
const WELL: Duration = Duration::from_millis(400);
/// How long a server may take to recover.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long HTTP/2's keep-alive takes to detect a dead connection.
const KEEP_ALIVE: Duration = Duration::from_secs(9);
/// How often a recovering server is probed.
const PROBED: Duration = Duration::from_millis(200);

/// Two servers, each with its own proxy to every etcd member.
struct World {
    members: Vec<Member>,
    /// The proxies of the first server, and those of the second.
    ways: [Vec<Proxy>; 2],
    servers: [TestServer; 2],
}

impl World {
    fn start(members: Vec<Member>, compaction: Option<Duration>) -> Result<Self> {
        let ways = || -> Result<Vec<Proxy>> {
            members.iter().map(|member| Ok(Proxy::to(member.address())?)).collect()
        };
        let ways = [ways()?, ways()?];
        let part = new_part(Vec::new());
        let server = |ways: &[Proxy]| {
            let endpoints = ways.iter().map(|way| way.url.clone()).collect();
            let etcd = Etcd { endpoints, compaction_interval: compaction, ..part.clone() };
            TestServer::start_with(Config { etcd: Some(etcd), ..Config::ephemeral() })
        };
        let servers = [server(&ways[0])?, server(&ways[1])?];
        Ok(Self { members, ways, servers })
    }

    fn targets(&self) -> Result<Vec<Target>> {
        let target = |server: &TestServer| {
            Target::new(Cluster::from_text(server.kubeconfig(), Path::new("."))?)
        };
        self.servers.iter().map(target).collect()
    }

    /// Runs a campaign while a fault is injected again and again.
    fn campaign(
        &mut self,
        campaign: &Campaign,
        mut break_something: impl FnMut(&mut Vec<Member>, &[Vec<Proxy>; 2]) -> Result<()> + Send,
    ) -> Result<Summary> {
        let targets = self.targets()?;
        let (members, ways) = (&mut self.members, &self.ways);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let breaker = scope.spawn(|| -> Result<usize> {
                let mut count = 0;
                while !is_over.load(Ordering::SeqCst) {
                    break_something(members, ways)?;
                    count += 1;
                    thread::sleep(WELL);
                }
                Ok(count)
            });
            let summary = replicas::run(&targets, campaign);
            is_over.store(true, Ordering::SeqCst);
            let count = breaker.join().map_err(|_| anyhow::anyhow!("the breaker panicked"))??;
            ensure!(count > 0, "nothing was broken");
            summary
        })
    }
}

/// A temporary fault.
type Fault = fn(&mut Vec<Member>, &[Vec<Proxy>; 2]) -> Result<()>;

/// Faults of an etcd with one member, and whether requests may fail meanwhile.
const FAULTS: [(&str, bool, Fault); 6] = [
    ("one server is cut off", true, |_, ways| for_a_while(&ways[..1], Way::Cut)),
    ("all connections end", true, |_, ways| for_a_while(ways, Way::Cut)),
    ("nothing comes through to one server", true, |_, ways| for_a_while(&ways[1..], Way::Held)),
    ("the way is slow", false, |_, ways| {
        for_a_while(&ways[..1], Way::Slow(Duration::from_millis(20)))
    }),
    ("etcd is defragmented", false, |members, _| {
        members[0].call("maintenance/defragment", "{}").map(drop).context("it is defragmented")
    }),
    ("etcd is killed", true, |members, _| Ok(members[0].crash()?)),
];

fn for_a_while(ways: &[Vec<Proxy>], way: Way) -> Result<()> {
    let all = || ways.iter().flatten();
    all().for_each(|proxy| proxy.set(way));
    thread::sleep(BROKEN);
    all().for_each(|proxy| proxy.set(Way::Open));
    Ok(())
}

#[test]
fn faults_of_one_etcd_leave_one_history() -> Result<()> {
    let Some(member) = Member::start(&[])? else { return Ok(()) };
    let mut world = World::start(vec![member], None)?;
    for (seed, (name, may_fail, fault)) in (1..).zip(FAULTS) {
        let campaign = Campaign { seed, clients: 6, requests: 60, may_fail };
        let summary = world.campaign(&campaign, fault).context(name)?;
        writeln!(stdout(), "{name}: {summary}")?;
        ensure!(summary.wrong.is_empty(), "{name}: {summary}");
        ensure!(summary.changes > 20, "{name}: too little happened: {summary}");
    }
    Ok(())
}

/// Both servers compact as often as they can, in turns, without errors for clients.
#[test]
fn servers_compact_alternately() -> Result<()> {
    let Some(member) = Member::start(&[])? else { return Ok(()) };
    let mut world = World::start(vec![member], Some(Duration::from_millis(100)))?;
    let campaign = Campaign { seed: 1, clients: 6, requests: 120, may_fail: false };
    let mut floors = Vec::new();
    let summary = world.campaign(&campaign, |members, _| {
        // A read of the first revision gets the compacted revision.
        floors.push(members[0].call("kv/range", r#"{"key": "YQ==", "revision": 1}"#)?);
        Ok(())
    })?;
    ensure!(summary.wrong.is_empty(), "{summary}");
    let last = floors.last().context("there are answers")?;
    ensure!(last.contains("compacted"), "nothing was compacted: {last}");
    Ok(())
}

/// When etcd has no space, writes fail with its message and reads continue; when there is space
/// again, writes succeed.
#[test]
fn a_full_etcd_refuses_writes_and_serves_reads() -> Result<()> {
    let Some(member) = Member::start(&["--quota-backend-bytes=16777216"])? else { return Ok(()) };
    let world = World::start(vec![member], None)?;
    let target = &world.targets()?[0];
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = |name: &str, bytes: usize| json!({"metadata": {"name": name}, "data": {"a": "x".repeat(bytes)}});
    let mut stored = 0;
    let (status, body) = loop {
        ensure!(stored < 100, "etcd takes more than its quota");
        match ask(target, "POST", maps, Some(&map(&format!("m{stored}"), 500_000)))? {
            (201, _) => stored += 1,
            refusal => break refusal,
        }
    };
    let message = body["message"].as_str().unwrap_or_default();
    ensure!(status == 500 && message.contains("database space exceeded"), "{status} {body}");
    for target in &world.targets()? {
        let (status, list) = ask(target, "GET", maps, None)?;
        let is_large = |map: &&Value| map["data"]["a"].is_string();
        let count = list["items"].as_array().into_iter().flatten().filter(is_large).count();
        ensure!(status == 200 && count == stored, "{status}: {count} of {stored}");
    }
    // Deletions need no space.
    for number in 0..stored {
        let (status, body) = ask(target, "DELETE", &format!("{maps}/m{number}"), None)?;
        ensure!(status == 200, "{status} {body}");
    }
    let member = &world.members[0];
    let status: Value = body_of(&member.call("maintenance/status", "{}")?)?;
    let revision = status["header"]["revision"].as_str().context("a revision")?;
    let compaction = json!({"revision": revision, "physical": true}).to_string();
    let alarm = json!({
        "action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": status["header"]["member_id"],
    });
    let alarm = alarm.to_string();
    for (method, request) in [
        ("kv/compaction", &*compaction),
        ("maintenance/defragment", "{}"),
        ("maintenance/alarm", &alarm),
    ] {
        let answer = member.call(method, request)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{method}: {answer}");
    }
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match ask(target, "POST", maps, Some(&map("after", 1)))? {
            (201, _) => return Ok(()),
            (status, body) => ensure!(Instant::now() < deadline, "{status} {body}"),
        }
    }
}

/// Members of three are killed and paused, and servers cut off from one, for the duration of the
/// campaign.
#[test]
#[ignore = "takes minutes"]
fn faults_of_three_members_leave_one_history() -> Result<()> {
    let Some(members) = Member::cluster(3, &[])? else { return Ok(()) };
    let mut world = World::start(members, Some(Duration::from_secs(5)))?;
    let mut turn = 0;
    let campaign = Campaign { seed: 1, clients: 8, requests: 4000, may_fail: true };
    let summary = world.campaign(&campaign, |members, ways| {
        let number = turn / 4 % members.len();
        match turn % 4 {
            0 => members[number].crash()?,
            1 => {
                members[number].pause()?;
                thread::sleep(3 * Duration::from_secs(1));
                members[number].resume()?;
            }
            2 => {
                ways[0][number].set(Way::Held);
                thread::sleep(3 * Duration::from_secs(1));
                ways[0][number].set(Way::Open);
            }
            _ => for_a_while(ways, Way::Cut)?,
        }
        turn += 1;
        Ok(())
    })?;
    writeln!(stdout(), "{turn} faults: {summary}")?;
    ensure!(summary.wrong.is_empty(), "{summary}");
    ensure!(turn > 20, "too little was broken: {turn}");
    Ok(())
}

/// A server replaces a member that does not respond by another one, though no connection ends:
/// requests are served again before a keep-alive would detect the dead connection.
#[test]
fn a_hanging_member_is_replaced_soon() -> Result<()> {
    let Some(members) = Member::cluster(3, &[])? else { return Ok(()) };
    let world = World::start(members, None)?;
    let target = &world.targets()?[0];
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"generateName": "m-"}});
    let serves = |method, object| matches!(ask(target, method, maps, object), Ok((status, _)) if status < 300);
    world.ways[0][0].set(Way::Held);
    let since = Instant::now();
    let is_left = AtomicBool::new(false);
    let took = thread::scope(|scope| {
        while !is_left.load(Ordering::SeqCst) && since.elapsed() < TIMEOUT {
            scope.spawn(|| {
                if serves("POST", Some(&map)) && serves("GET", None) {
                    is_left.store(true, Ordering::SeqCst);
                }
            });
            thread::sleep(PROBED);
        }
        let took = since.elapsed();
        // The requests that wait for the member end.
        world.ways[0][0].set(Way::Open);
        took
    });
    writeln!(stdout(), "the member was left after {took:?}")?;
    ensure!(took < KEEP_ALIVE, "the member was left after {took:?}");
    Ok(())
}

/// The status and the object of a response.
fn ask(target: &Target, method: &str, path: &str, object: Option<&Value>) -> Result<(u16, Value)> {
    let mut headers: Vec<_> = target.authorization().into_iter().collect();
    headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    let body = object.map(|object| object.to_string().into_bytes());
    let request = Request { method: method.to_owned(), target: path.to_owned(), headers, body };
    let answer = target.connect(false)?.exchange(&request)?;
    Ok((answer.head.status, serde_json::from_slice(&answer.body)?))
}

/// The object in a response of etcd.
fn body_of(answer: &str) -> Result<Value> {
    let (_, body) = answer.split_once("\r\n\r\n").context("a body")?;
    let (first, last) = (body.find('{').context("an object")?, body.rfind('}').context("its end")?);
    Ok(serde_json::from_str(&body[first..=last])?)
}
