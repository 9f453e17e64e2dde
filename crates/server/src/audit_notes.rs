//! Audit annotations of code that has no access to the request's record, such as connections to
//! webhooks. The notes belong to the request that the current task handles (upstream: the audit
//! context).

use std::cell::RefCell;

use tokio::task::futures::TaskLocalFuture;

/// The most notes that a request collects between two calls of [`take`]; further ones are dropped.
const NOTES_MAX: usize = 64;

/// A key and a value.
pub(crate) type Note = (String, &'static str);

tokio::task_local! {
    static NOTES: RefCell<Vec<Note>>;
}

/// Collects the notes of a request while it is handled.
pub(crate) fn collecting<F: Future>(request: F) -> TaskLocalFuture<RefCell<Vec<Note>>, F> {
    NOTES.scope(RefCell::default(), request)
}

/// Adds an annotation to the audit events of the request that is being handled, if there is one.
pub(crate) fn add(key: String, value: &'static str) {
    let _ = NOTES.try_with(|notes| {
        let mut notes = notes.borrow_mut();
        if notes.len() < NOTES_MAX {
            notes.push((key, value));
        }
    });
}

/// Takes the notes that were added since the last call.
pub(crate) fn take() -> Vec<Note> {
    NOTES.try_with(RefCell::take).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn notes_belong_to_their_request() {
        add("outside".to_owned(), "");
        let request = |name: &'static str| {
            collecting(async move {
                add(name.to_owned(), "1");
                tokio::task::yield_now().await;
                (0..2 * NOTES_MAX).for_each(|_| add(name.to_owned(), "2"));
                let taken = take();
                assert!(take().is_empty());
                taken
            })
        };
        let (one, other) = tokio::join!(request("one"), request("other"));
        for (notes, name) in [(one, "one"), (other, "other")] {
            assert_eq!(notes.len(), NOTES_MAX);
            assert_eq!(notes[0], (name.to_owned(), "1"));
            assert!(notes.iter().all(|(key, _)| key == name));
        }
    }
}
