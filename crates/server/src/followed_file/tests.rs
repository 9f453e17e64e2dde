use std::fs;
use std::pin::pin;
use std::sync::mpsc;

use parking_lot::Mutex;
use tokio::time::timeout;

use super::*;

/// Replaces the file at once, because it may be read at any time.
fn write(path: &Path, content: &str) {
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

/// The number of reloads with a status.
fn count(reloads: &Reloads, status: &str) -> u64 {
    let all = reloads.total.all();
    let found = all.iter().find(|([_, of], _)| **of == *status);
    found.map_or(0, |(_, counter)| counter.get())
}

#[tokio::test(start_paused = true)]
async fn each_change_is_taken_into_use_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("configuration.yaml");
    write(&path, "first");
    let (reloads, taken) = (Reloads::new("test"), Mutex::new(Vec::new()));
    let file = FollowedFile::new(&path, b"first");
    let mut following = pin!(file.follow(&reloads, async |content| {
        taken.lock().push(String::from_utf8(content.to_vec()).unwrap());
        Ok(())
    }));
    let mut taken_next = async || {
        let _ = timeout(PERIOD * 3, following.as_mut()).await;
        std::mem::take(&mut *taken.lock())
    };
    assert!(taken_next().await.is_empty());
    write(&path, "second");
    assert_eq!(taken_next().await, ["second"]);
    assert!(taken_next().await.is_empty());

    fs::remove_file(&path).unwrap();
    assert!(taken_next().await.is_empty());
    assert!(count(&reloads, "failure") > 0, "the file cannot be read");
    write(&path, "second");
    assert!(taken_next().await.is_empty(), "the content in use is back");

    write(&path, "");
    assert_eq!(taken_next().await, [""]);
    write(&path, "second");
    assert_eq!(taken_next().await, ["second"]);
    assert_eq!(count(&reloads, "success"), 3);
}

/// Content is tried again with growing pauses until what it needs is there. Invalid content is not.
#[tokio::test(start_paused = true)]
async fn refused_content_is_tried_again() {
    const READY: u64 = 100;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("configuration.yaml");
    let (reloads, tried, began) = (Reloads::new("test"), Mutex::new(Vec::new()), Instant::now());
    let file = FollowedFile::new(&path, b"");
    let mut following = pin!(file.follow(&reloads, async |content| {
        let seconds = began.elapsed().as_secs();
        tried.lock().push(seconds);
        match content.as_slice() {
            b"invalid" => Err(Unusable::Invalid("it is invalid".to_owned())),
            _ if seconds < READY => Err(Unusable::NotReady("a plugin is absent".to_owned())),
            _ => Ok(()),
        }
    }));
    let mut tried_during = async |seconds| {
        let _ = timeout(Duration::from_secs(seconds), following.as_mut()).await;
        std::mem::take(&mut *tried.lock())
    };
    write(&path, "early");
    let times = tried_during(2 * READY).await;
    let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60]);
    assert_eq!((count(&reloads, "failure"), count(&reloads, "success")), (7, 1));

    write(&path, "invalid");
    assert_eq!(tried_during(2 * READY).await.len(), 1);
    write(&path, "other");
    assert_eq!(tried_during(2).await.len(), 1, "other content is tried at once");
    assert_eq!((count(&reloads, "failure"), count(&reloads, "success")), (8, 2));
}

#[tokio::test]
async fn a_file_that_does_not_respond_delays_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe"); // its readers wait for a writer
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let _ = released.recv_timeout(Duration::from_secs(10));
            fs::write(pipe, "late").unwrap();
        }
    });
    let reading = tokio::spawn(async move { read(&pipe).await });
    tokio::task::yield_now().await;
    assert!(!reading.is_finished(), "the thread of this test did not wait for the writer");
    release.send(()).unwrap();
    assert_eq!(reading.await.unwrap().unwrap().as_slice(), b"late");
    writer.join().unwrap();
}
