//! A cache of answers with an expiry time: responses of webhooks, and verified tokens.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use parking_lot::Mutex;

/// A cache of answers by question. When it is full, the answer to the question that was cached
/// first is evicted.
pub(crate) struct Answers<A> {
    answers_max: usize,
    cached: Mutex<Cached<A>>,
}

struct Cached<A> {
    by_question: HashMap<Box<[u8]>, (A, Instant)>,
    /// The questions, the oldest first.
    order: VecDeque<Box<[u8]>>,
}

impl<A: Clone> Answers<A> {
    /// A cache of at most `answers_max` answers.
    pub(crate) fn new(answers_max: usize) -> Self {
        let cached = Cached { by_question: HashMap::new(), order: VecDeque::new() };
        Self { answers_max, cached: Mutex::new(cached) }
    }

    /// The answer to a question, if it is cached and has not expired.
    pub(crate) fn get(&self, question: &[u8]) -> Option<A> {
        let cached = self.cached.lock();
        let (answer, until) = cached.by_question.get(question)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    /// Caches an answer that expires at `until`.
    pub(crate) fn put(&self, question: Box<[u8]>, answer: A, until: Instant) {
        let Cached { by_question, order } = &mut *self.cached.lock();
        if by_question.insert(question.clone(), (answer, until)).is_none() {
            order.push_back(question);
        }
        if order.len() > self.answers_max {
            order.pop_front().map(|oldest| by_question.remove(&oldest));
        }
    }

    /// Removes all answers.
    pub(crate) fn clear(&self) {
        let Cached { by_question, order } = &mut *self.cached.lock();
        by_question.clear();
        order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ANSWERS_MAX: usize = 8192;

    #[test]
    fn answers_expire_and_the_oldest_is_evicted() {
        let answers = Answers::new(ANSWERS_MAX);
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        let question = |number: usize| number.to_string().into_bytes().into_boxed_slice();
        answers.put(question(0), 0, now);
        assert_eq!(answers.get(b"0"), None, "expired");
        for number in 0..=ANSWERS_MAX {
            answers.put(question(number), number, now + minute);
        }
        assert_eq!(answers.get(b"0"), None, "evicted as the oldest");
        assert!(answers.get(b"1").is_some());
        assert_eq!(answers.cached.lock().by_question.len(), ANSWERS_MAX);
        answers.clear();
        assert_eq!(answers.get(b"1"), None, "the cache is empty");
    }
}
