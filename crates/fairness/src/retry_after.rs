//! After how long a rejected client should ask again.

use std::collections::VecDeque;
use std::time::Duration;

/// The longest, in seconds.
const MAX: u64 = 32;

/// How many requests of a level were rejected, second by second, and what clients are told for it: the
/// time doubles while rejections go on, and falls by a second when there are few (upstream:
/// `droppedRequestsStats`).
#[derive(Clone, Debug)]
pub struct RetryAfter {
    /// Seconds, with the rejections in them; the oldest first.
    history: VecDeque<(u64, u64)>,
    second: u64,
    in_second: u64,
    seconds: u64,
    /// When it was raised last.
    raised: Option<u64>,
}

impl Default for RetryAfter {
    fn default() -> Self {
        Self { history: VecDeque::new(), second: 0, in_second: 0, seconds: 1, raised: None }
    }
}

impl RetryAfter {
    /// A request is rejected. Gives the number of seconds after which its client should ask again.
    pub fn rejected(&mut self, now: Duration) -> u64 {
        let second = now.as_secs();
        if self.second == second {
            self.in_second += 1;
            return self.seconds;
        }
        self.history.push_back((self.second, self.in_second));
        let oldest = self.second.saturating_sub((2 * self.seconds).min(MAX));
        while self.history.front().is_some_and(|(past, _)| *past < oldest) {
            self.history.pop_front();
        }
        (self.second, self.in_second) = (second, 1);
        self.adjust(second);
        self.seconds
    }

    fn adjust(&mut self, second: u64) {
        let since = second.saturating_sub(self.seconds);
        let recent = self.history.iter().filter(|(past, _)| *past >= since && *past < second);
        let rejected: u64 = recent.map(|(_, rejected)| rejected).sum();
        let may_rise = self.raised.is_none_or(|raised| second - raised >= self.seconds);
        if may_rise && rejected >= 3 * self.seconds {
            self.seconds = (self.seconds * 2).min(MAX);
            self.raised = Some(second);
        } else if rejected < self.seconds && self.seconds > 1 {
            self.seconds -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_wait_longer_while_many_are_rejected_and_shorter_after() {
        let mut told = RetryAfter::default();
        let mut at = |second: u64, rejected: u64| {
            (0..rejected).map(|_| told.rejected(Duration::from_secs(second))).last().unwrap()
        };
        assert_eq!(at(100, 10), 1);
        assert_eq!(at(101, 10), 2);
        assert_eq!(at(102, 10), 2);
        assert_eq!(at(103, 10), 4);
        assert_eq!((104..200).map(|second| at(second, 1000)).max(), Some(32));
        assert_eq!(at(300, 1), 31);
        assert_eq!(at(400, 1), 30);
    }
}
