//! Answers that count for a while: a webhook's, or a verified token's.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use parking_lot::Mutex;

/// A cache of answers by question. When it is full, the oldest answer goes first.
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
    /// A cache of at most so many answers.
    pub(crate) fn new(answers_max: usize) -> Self {
        let cached = Cached { by_question: HashMap::new(), order: VecDeque::new() };
        Self { answers_max, cached: Mutex::new(cached) }
    }

    /// The answer to a question, if it still counts.
    pub(crate) fn get(&self, question: &[u8]) -> Option<A> {
        let cached = self.cached.lock();
        let (answer, until) = cached.by_question.get(question)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    /// Caches an answer until a time.
    pub(crate) fn put(&self, question: Box<[u8]>, answer: A, until: Instant) {
        let Cached { by_question, order } = &mut *self.cached.lock();
        if by_question.insert(question.clone(), (answer, until)).is_none() {
            order.push_back(question);
        }
        if order.len() > self.answers_max {
            order.pop_front().map(|oldest| by_question.remove(&oldest));
        }
    }

    /// Forgets all answers.
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
    fn answers_are_forgotten_in_time_and_by_number() {
        let answers = Answers::new(ANSWERS_MAX);
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        let question = |number: usize| number.to_string().into_bytes().into_boxed_slice();
        answers.put(question(0), 0, now);
        assert_eq!(answers.get(b"0"), None, "its time is over");
        for number in 0..=ANSWERS_MAX {
            answers.put(question(number), number, now + minute);
        }
        assert_eq!(answers.get(b"0"), None, "it was the oldest");
        assert!(answers.get(b"1").is_some());
        assert_eq!(answers.cached.lock().by_question.len(), ANSWERS_MAX);
        answers.clear();
        assert_eq!(answers.get(b"1"), None, "all are forgotten");
    }
}
