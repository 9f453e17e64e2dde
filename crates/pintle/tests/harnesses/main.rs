//! The program in the place of kube-apiserver and etcd, started and stopped as test harnesses do
//! it.
//!
//! The command lines are those of controller-runtime's envtest, fabric8's kube-api-test and
//! kwokctl.

mod command_lines;
mod pki;
mod plane;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use command_lines::{HARNESSES, Harness};
use plane::{Plane, Program};
use serde_json::json;

/// Far more than a start takes, also with seven other starts on two slow and busy cores.
const START_MAX: Duration = Duration::from_secs(60);

fn everywhere(test: impl Fn(&Harness, &mut Plane)) {
    for harness in HARNESSES {
        let mut plane = Plane::new(harness);
        test(harness, &mut plane);
        plane.check_ends();
    }
}

#[test]
fn a_plane_starts_serves_and_stops() {
    everywhere(|harness, plane| {
        plane.start(Program::Etcd);
        plane.start(Program::KubeApiserver);
        plane.check_serves();
        plane.create("a");
        plane.stop(Program::KubeApiserver);
        plane.stop(Program::Etcd);
        assert!(!plane.serves(), "{}", harness.name);
    });
}

/// Each of the two programs may be stopped and started without the other, in any order, and no
/// written object is lost.
#[test]
fn either_may_go_and_come_back() {
    use Program::{Etcd, KubeApiserver};
    everywhere(|_, plane| {
        plane.spawn(KubeApiserver); // it waits for its etcd
        plane.start(Etcd);
        plane.check_serves();
        plane.create("a");
        for round in [[Etcd, KubeApiserver], [KubeApiserver, Etcd]] {
            round.into_iter().for_each(|program| plane.stop(program));
            plane.start(Etcd);
            plane.start(KubeApiserver);
            plane.check_serves();
            assert!(plane.has("a"));
        }
        plane.stop(Etcd);
        plane.create("b");
        plane.start(Etcd);
        plane.kill(KubeApiserver);
        plane.start(KubeApiserver);
        plane.check_serves();
        assert!(plane.has("a") && plane.has("b"));
    });
}

/// A start that fails prints the reason and leaves nothing running.
#[test]
fn a_start_that_fails_ends() {
    let harness = &HARNESSES[0];
    let mut plane = Plane::new(harness);
    plane.start(Program::Etcd);
    let fails = |plane: &Plane, why: &str| {
        let (code, words) = plane.fail(Program::KubeApiserver);
        assert_eq!(code, Some(1), "{words}");
        assert!(words.contains(why), "{words}");
    };
    let taken = plane.take_port();
    fails(&plane, "in use");
    drop(taken);
    plane.start(Program::KubeApiserver);
    plane.stop(Program::KubeApiserver);
    plane.add("--client-ca-file=/nowhere/ca.crt");
    fails(&plane, "/nowhere/ca.crt");
    plane.stop(Program::Etcd);
    plane.check_ends();
}

/// A flag that protects data or access and is not implemented is refused, not ignored.
#[test]
fn a_start_without_the_protection_that_is_asked_for_ends() {
    let mut plane = Plane::new(&HARNESSES[0]);
    plane.add("--service-account-signing-endpoint=p");
    let (code, words) = plane.fail(Program::KubeApiserver);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("--service-account-signing-endpoint=p: not implemented yet"), "{words}");
}

/// With the authorization mode AlwaysAllow, which is the default, requests without credentials are
/// refused.
#[test]
fn everyone_may_do_everything_but_not_without_credentials() {
    for added in [None, Some("--authorization-mode=RBAC,AlwaysAllow")] {
        let mut plane = Plane::new(&HARNESSES[0]);
        plane.leave_out("--authorization-mode");
        added.into_iter().for_each(|flag| plane.add(flag));
        plane.start(Program::Etcd);
        plane.spawn(Program::KubeApiserver);
        plane.check_is_closed();
        plane.check_ends();
    }
}

/// A deleted namespace is removed with the objects in it.
#[test]
fn namespaces_go() {
    everywhere(|_, plane| {
        plane.start_both();
        plane.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}));
        plane.post("/api/v1/namespaces/n/configmaps", &json!({"metadata": {"name": "a"}}));
        plane.delete("/api/v1/namespaces/n", "/api/v1/namespaces/n");
    });
}

/// An object whose owner was deleted is collected, and so are the objects that it owned.
#[test]
fn garbage_is_collected() {
    everywhere(|_, plane| {
        const PATH: &str = "/api/v1/namespaces/default/configmaps";
        plane.start_both();
        let mut owners = Vec::new();
        for name in ["a", "b", "c"] {
            let metadata = json!({"name": name, "ownerReferences": owners});
            let uid = plane.post(PATH, &json!({"metadata": metadata}));
            owners =
                vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})];
        }
        plane.delete(&format!("{PATH}/a"), &format!("{PATH}/c"));
    });
}

#[test]
fn help_is_asked_for_first() {
    for program in [Program::KubeApiserver, Program::Etcd] {
        let plane = Plane::new(&HARNESSES[0]);
        let (code, words) = plane.ask(program, "--help");
        assert_eq!(code, Some(0));
        let is_insecure = |line: &str| line.trim_start().starts_with("--insecure-port");
        assert!(!words.lines().any(is_insecure), "{words}");
        assert!(words.contains("--unsafe-no-fsync"), "{words}");
    }
}

/// Of `PINTLE_STARTS` starts (16 by default), eight at a time, none fails and none takes longer
/// than [`START_MAX`].
#[test]
fn starts_under_contention() {
    const AT_ONCE: usize = 8;
    let count = std::env::var("PINTLE_STARTS").ok().and_then(|text| text.parse().ok());
    let (count, begun) = (count.unwrap_or(16), AtomicUsize::new(0));
    let mut took: Vec<Duration> = std::thread::scope(|scope| {
        let one_after_another = || {
            let mut took = Vec::new();
            while begun.fetch_add(1, Ordering::Relaxed) < count {
                let mut plane = Plane::new(&HARNESSES[0]);
                took.push(plane.start_both());
                plane.stop(Program::KubeApiserver);
                plane.stop(Program::Etcd);
                plane.check_ends();
            }
            took
        };
        let threads = [(); AT_ONCE].map(|()| scope.spawn(one_after_another));
        threads.into_iter().flat_map(|thread| thread.join().expect("all start")).collect()
    });
    took.sort();
    let (median, slowest) = (took[took.len() / 2], took[took.len() - 1]);
    println!("{count} starts, {AT_ONCE} at once: median {median:.0?}, slowest {slowest:.0?}");
    assert!(slowest < START_MAX, "{slowest:?}");
}
