//! Node ports of one service, in tables.

use std::time::{Duration, Instant};

use super::*;
use crate::cluster;

/// As many ports as fit into a request.
const MANY: i64 = 100_000;

/// How long the assignment may take in a build for tests; with a list of the ports in place of a
/// set, it takes minutes.
const SOON: Duration = Duration::from_secs(20);

fn service(ports: impl Iterator<Item = (i64, i64)>) -> Value {
    let port = |(port, node_port): (i64, i64)| {
        let mut members = Value::from([("port", Value::from(port)), ("protocol", "TCP".into())]);
        if node_port != 0 {
            members.make_object().insert("nodePort", node_port);
        }
        members
    };
    let ports: Vec<Value> = ports.map(port).collect();
    let spec = Value::from([("type", Value::from("NodePort")), ("ports", Value::from(ports))]);
    Value::from([("spec", spec)])
}

async fn assign(new: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    let registry = cluster::registry().await;
    let (record, range) = (PortRecord::default(), PortRange::default());
    let found = OnceCell::from(Ok(Taken::none(range)));
    let mut pool = Pool {
        registry: &registry,
        record: &record,
        found,
        range,
        entropy: |bytes| bytes.fill(7),
        dry_run: true,
        taken: Got::default(),
        measures: None,
    };
    pool.assign(new, old)
}

#[tokio::test]
async fn a_dry_run_gets_the_ports_after_the_last() {
    type Row = (&'static [(i64, i64)], &'static [i64]);
    let rows: [Row; 4] = [
        (&[(80, 0)], &[32769]),
        (&[(80, 0), (81, 0), (80, 0)], &[32769, 32770, 32769]),
        (&[(80, 30000), (81, 0)], &[30000, 30001]),
        (&[(80, 0), (80, 40000), (81, 0)], &[40000, 40000, 40001]),
    ];
    for (ports, expected) in rows {
        let mut service = service(ports.iter().copied());
        assign(&mut service, None).await.expect("ports are free");
        assert_eq!(node_ports(&service), expected, "{ports:?}");
    }
}

#[tokio::test]
async fn an_update_refuses_a_port_twice() {
    let old = service([(80, 30000)].into_iter());
    let mut new = service([(80, 30000), (81, 30000)].into_iter());
    let refused = assign(&mut new, Some(&old)).await.expect_err("the port is used twice");
    assert_eq!(refused.message, "duplicate nodePort: {TCP 30000}");
}

/// The work for many ports is not quadratic.
#[tokio::test]
async fn many_ports_are_assigned_soon() {
    type Port = fn(i64) -> (i64, i64);
    let rows: [(&str, Port); 2] =
        [("any", |port| (port, 0)), ("requested", |port| (port, port + MANY))];
    for (what, port) in rows {
        for old in [None, Some(service([].into_iter()))] {
            let mut new = service((1..=MANY).map(port));
            let began = Instant::now();
            assign(&mut new, old.as_ref()).await.expect("ports are free");
            assert!(began.elapsed() < SOON, "{what}: {:?}", began.elapsed());
            assert_eq!(i64::try_from(node_ports(&new).len()), Ok(MANY), "{what}");
        }
    }
}
