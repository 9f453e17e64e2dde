use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::*;

fn user(name: &str) -> Arc<User> {
    Arc::new(User { name: name.to_owned(), ..User::default() })
}

/// Does something apart, once.
async fn apart_in<T>(compute: &Compute, name: &str, work: impl Fn() -> T) -> T {
    let mut lane = compute.lane(&user(name));
    poll_fn(|context| lane.poll_separately(context, |_| work())).await
}

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(threads).build().expect("threads are to be had")
}

/// Requests that compute for as long as they are let stall nobody: the runtime has two threads, and eight
/// such requests.
#[test]
fn long_computing_stalls_nobody() {
    let runtime = runtime(2);
    let compute = Arc::new(Compute::new(2));
    let (go, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let requests: Vec<_> = (0..8)
        .map(|number| {
            let (compute, gate) = (compute.clone(), gate.clone());
            runtime.spawn(async move {
                let request = async {
                    work::ahead(usize::MAX).await;
                    // As long computing: it holds its thread until the others were served.
                    gate.lock().recv().expect("the test lets each go")
                };
                compute.run(&user(&format!("user-{number}")), request).await;
            })
        })
        .collect();
    // Small requests are answered meanwhile.
    for _ in 0..100 {
        let compute = compute.clone();
        let small = runtime.spawn(async move {
            let request = async {
                work::ahead(1).await;
                tokio::task::yield_now().await;
            };
            compute.run(&user("other"), request).await;
        });
        runtime.block_on(small).expect("it is answered");
    }
    (0..8).for_each(|_| go.send(()).expect("they wait"));
    requests.into_iter().for_each(|request| runtime.block_on(request).expect("it is answered"));
}

#[tokio::test]
async fn users_take_turns() {
    let compute = Compute::new(1);
    let held = compute.0.enter("holder").ok().expect("the slot is free");
    let order = Mutex::new(Vec::new());
    let waits = async |name: &str| {
        apart_in(&compute, name, || order.lock().push(name.to_owned())).await;
    };
    // Each stands in the queue before the next comes.
    let mut first: Vec<_> = (0..3).map(|_| Box::pin(waits("many"))).collect();
    for waiting in &mut first {
        assert!(waiting.as_mut().now_or_never().is_none());
    }
    let (mut one, mut two) = (Box::pin(waits("one")), Box::pin(waits("two")));
    assert!(one.as_mut().now_or_never().is_none() && two.as_mut().now_or_never().is_none());
    // Who leaves the queue is passed over.
    drop(first.remove(1));
    drop(held);
    futures_util::future::join5(first.remove(0), one, two, first.remove(0), async {}).await;
    assert_eq!(*order.lock(), ["many", "one", "two", "many"]);
    let slot = compute.0.enter("last").ok().expect("the slot is free again");
    drop(slot);
    assert_eq!(compute.0.0.lock().free, 1);
}

#[tokio::test]
async fn a_slot_is_not_held_while_a_request_waits() {
    let compute = Arc::new(Compute::new(1));
    let (begun, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let waiting = tokio::spawn({
        let (compute, begun, goes_on) = (compute.clone(), begun.clone(), goes_on.clone());
        async move {
            let request = async {
                work::ahead(usize::MAX).await;
                begun.notify_one();
                goes_on.notified().await;
            };
            compute.run(&user("slow"), request).await;
        }
    });
    begun.notified().await;
    let count = AtomicUsize::new(0);
    apart_in(&compute, "other", || count.fetch_add(1, Ordering::Relaxed)).await;
    assert_eq!(count.into_inner(), 1);
    goes_on.notify_one();
    waiting.await.expect("it is answered");
}
