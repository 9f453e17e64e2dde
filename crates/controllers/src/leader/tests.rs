use std::time::Duration;

use pintle_meta::Status;
use tokio::sync::watch;

use super::{Candidate, DURATION, Leadership, RENEWAL_DEADLINE, RETRY, campaign};
use crate::cluster::Cluster;

const LEASES: &str = "coordination.k8s.io/leases";

/// Advances the candidates' own clock.
async fn pass(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

async fn candidates(cluster: &Cluster) -> [Candidate; 2] {
    cluster.create("namespaces", r#"{"metadata":{"name":"kube-system"}}"#).await.expect("created");
    ["a", "b"].map(|name| {
        Candidate::new(cluster.environment.clone(), name.into()).expect("leases are served")
    })
}

#[tokio::test]
async fn the_leader_leads_until_its_lease_expires() {
    let cluster = Cluster::start().await;
    let [mut a, mut b] = candidates(&cluster).await;
    assert_eq!(a.acquire().await, Ok(true));
    assert_eq!(b.acquire().await, Ok(false));
    pass(DURATION / 2).await;
    cluster.pass_seconds(5);
    assert_eq!(a.acquire().await, Ok(true), "it renews");
    pass(DURATION / 2 + Duration::from_secs(1)).await;
    assert_eq!(b.acquire().await, Ok(false), "it has seen a renewal since");
    pass(DURATION).await;
    assert_eq!(b.acquire().await, Ok(true), "the lease expired");
    assert_eq!(a.acquire().await, Ok(false));
    let lease = cluster.get(LEASES, "kube-system", "pintle-controllers").expect("there");
    assert_eq!(lease.str_at(&["spec", "holderIdentity"]), Some("b"));
    let transitions = lease.at(&["spec", "leaseTransitions"]);
    assert_eq!(transitions.and_then(pintle_value::Value::as_int), Some(1));
}

#[tokio::test]
async fn a_released_lease_can_be_acquired() {
    let cluster = Cluster::start().await;
    let [mut a, mut b] = candidates(&cluster).await;
    assert_eq!(a.acquire().await, Ok(true));
    assert_eq!(b.acquire().await, Ok(false));
    b.release().await.expect("the lease of another server is not released");
    assert_eq!(b.acquire().await, Ok(false));
    a.release().await.expect("released");
    assert_eq!(b.acquire().await, Ok(true));
}

/// A renewal that takes as long as it says, and the next ones less.
async fn acquire(takes: &mut Duration) -> Result<bool, Status> {
    tokio::time::sleep(std::mem::replace(takes, Duration::from_millis(10))).await;
    Ok(true)
}

/// The controllers must not be stopped because the database was slow once.
#[tokio::test(start_paused = true)]
async fn a_slow_renewal_is_renewed_at_once() {
    let leads = watch::Sender::new(false);
    let mut took = RENEWAL_DEADLINE - RETRY;
    let mut changes = leads.subscribe();
    let lost = async {
        changes.wait_for(|leads| *leads).await.map(drop)?;
        changes.wait_for(|leads| !*leads).await.map(drop)
    };
    tokio::select! {
        () = campaign(&mut took, |took| Box::pin(acquire(took)), &leads) => {}
        _ = lost => panic!("the controllers are stopped"),
        () = tokio::time::sleep(DURATION) => {}
    }
    assert!(*leads.borrow());
}

#[tokio::test]
async fn work_runs_while_the_server_leads() {
    let (leads, receiver) = watch::channel(false);
    let (began, mut beginnings) = tokio::sync::mpsc::unbounded_channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let work = Leadership(receiver).run(async { _ = stopped.await }, move |ended| {
        let began = began.clone();
        async move {
            began.send("began").expect("heard");
            ended.await;
            began.send("ended").expect("heard");
        }
    });
    let work = tokio::spawn(work);
    for _ in 0..2 {
        leads.send_replace(true);
        assert_eq!(beginnings.recv().await, Some("began"));
        leads.send_replace(false);
        assert_eq!(beginnings.recv().await, Some("ended"));
    }
    leads.send_replace(true);
    assert_eq!(beginnings.recv().await, Some("began"));
    drop(stop);
    work.await.expect("no panic");
    assert_eq!(beginnings.recv().await, None);
}
