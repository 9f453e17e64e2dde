//! The time after which a rejected client should try again.

use std::collections::VecDeque;
use std::time::Duration;

/// The maximum in seconds.
const MAX: u64 = 32;

/// The rejections of a level per second, and the time that is sent to clients: it doubles while
/// rejections continue, and decreases by a second when there are few (upstream:
/// `droppedRequestsStats`).
#[derive(Clone, Debug)]
pub struct RetryAfter {
    /// Past seconds and their rejections; the oldest is first.
    history: VecDeque<(u64, u64)>,
    second: u64,
    in_second: u64,
    seconds: u64,
    /// The second of the last increase.
    raised: Option<u64>,
}

impl Default for RetryAfter {
    fn default() -> Self {
        Self { history: VecDeque::new(), second: 0, in_second: 0, seconds: 1, raised: None }
    }
}

impl RetryAfter {
    /// Counts a rejection. Returns the number of seconds after which the client should try again.
    pub fn rejected(&mut self, now: Duration) -> u64 {
        // Clients that are refused at the same time may read the clock in another order.
        let second = now.as_secs().max(self.second);
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
        let may_rise =
            self.raised.is_none_or(|raised| second.saturating_sub(raised) >= self.seconds);
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
    fn the_time_rises_with_rejections_and_falls_afterwards() {
        let mut retry_after = RetryAfter::default();
        let mut at = |second: u64, rejected: u64| {
            (0..rejected).map(|_| retry_after.rejected(Duration::from_secs(second))).last().unwrap()
        };
        assert_eq!(at(100, 10), 1);
        assert_eq!(at(101, 10), 2);
        assert_eq!(at(102, 10), 2);
        assert_eq!(at(103, 10), 4);
        assert_eq!(at(102, 10), 4, "a clock that was read earlier");
        assert_eq!((104..200).map(|second| at(second, 1000)).max(), Some(32));
        assert_eq!(at(300, 1), 31);
        assert_eq!(at(400, 1), 30);
    }
}
