//! What a webhook answered, for as long as it counts.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use parking_lot::Mutex;
use pintle_auth::review::Verdict;

/// How many answers are remembered; the oldest goes first.
const ANSWERS_MAX: usize = 8192;

#[derive(Default)]
pub(super) struct Answers(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    by_question: HashMap<Box<[u8]>, (Verdict, Instant)>,
    /// The questions, the oldest first.
    order: VecDeque<Box<[u8]>>,
}

impl Answers {
    pub(super) fn get(&self, question: &[u8]) -> Option<Verdict> {
        let remembered = self.0.lock();
        let (verdict, until) = remembered.by_question.get(question)?;
        (Instant::now() < *until).then(|| verdict.clone())
    }

    pub(super) fn put(&self, question: Box<[u8]>, verdict: Verdict, until: Instant) {
        let Remembered { by_question, order } = &mut *self.0.lock();
        if by_question.insert(question.clone(), (verdict, until)).is_none() {
            order.push_back(question);
        }
        if order.len() > ANSWERS_MAX {
            order.pop_front().map(|oldest| by_question.remove(&oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn answers_are_forgotten_in_time_and_by_number() {
        let answers = Answers::default();
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        let question = |number: usize| number.to_string().into_bytes().into_boxed_slice();
        answers.put(question(0), Verdict::default(), now);
        assert_eq!(answers.get(b"0"), None, "its time is over");
        for number in 0..=ANSWERS_MAX {
            answers.put(question(number), Verdict::default(), now + minute);
        }
        assert_eq!(answers.get(b"0"), None, "it was the oldest");
        assert!(answers.get(b"1").is_some());
        assert_eq!(answers.0.lock().by_question.len(), ANSWERS_MAX);
    }
}
