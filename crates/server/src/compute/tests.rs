use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::*;

fn user(name: &str) -> Arc<User> {
    Arc::new(User { name: name.to_owned(), ..User::default() })
}

/// Runs `work` on a separate thread, in the lane of a user.
async fn compute_in_lane<T>(compute: &Compute, name: &str, work: impl Fn() -> T) -> T {
    let mut lane = compute.lane(&user(name));
    poll_fn(|context| lane.poll_separately(context, |_| work())).await
}

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(threads).build().expect("the runtime starts")
}

/// The runtime has two threads. Eight requests compute until the test releases them.
#[test]
fn long_computations_do_not_block_small_requests() {
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
                    // This stands for a long computation: it blocks its thread until small requests
                    // are served.
                    gate.lock().recv().expect("the test releases it")
                };
                compute.run(&user(&format!("user-{number}")), request).await;
            })
        })
        .collect();
    // Small requests are served meanwhile.
    for _ in 0..100 {
        let compute = compute.clone();
        let small = runtime.spawn(async move {
            let request = async {
                work::ahead(1).await;
                tokio::task::yield_now().await;
            };
            compute.run(&user("other"), request).await;
        });
        runtime.block_on(small).expect("it is served");
    }
    (0..8).for_each(|_| go.send(()).expect("the request waits"));
    requests.into_iter().for_each(|request| runtime.block_on(request).expect("it is served"));
}

#[tokio::test]
async fn users_alternate_however_many_polls_each_has() {
    let compute = Compute::new(1);
    let held = compute.0.enter("holder").ok().expect("the slot is free");
    let order = Mutex::new(Vec::new());
    let waits = async |name: &str| {
        compute_in_lane(&compute, name, || order.lock().push(name.to_owned())).await;
    };
    // Each is polled once, so they enter the queue in this order.
    let mut first: Vec<_> = (0..3).map(|_| Box::pin(waits("many"))).collect();
    for waiting in &mut first {
        assert!(waiting.as_mut().now_or_never().is_none());
    }
    let (mut one, mut two) = (Box::pin(waits("one")), Box::pin(waits("two")));
    assert!(one.as_mut().now_or_never().is_none() && two.as_mut().now_or_never().is_none());
    // A poll that was dropped is skipped.
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
    compute_in_lane(&compute, "other", || count.fetch_add(1, Ordering::Relaxed)).await;
    assert_eq!(count.into_inner(), 1);
    goes_on.notify_one();
    waiting.await.expect("it is served");
}
