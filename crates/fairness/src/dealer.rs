//! Shuffle sharding: the requests of a flow go to a few queues, so that two flows share few queues.

/// The maximum number of queues of a flow.
pub const MAX_HAND_SIZE: usize = 15;

/// Deals hands of queues (upstream: `shufflesharding.Dealer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealer {
    queues: usize,
    hand_size: usize,
}

impl Dealer {
    /// Creates a dealer of `hand_size` out of `queues`; `None` if a number is zero or too large, if
    /// there are too few queues, or if more than 60 bits of a hash would be needed.
    pub fn new(queues: usize, hand_size: usize) -> Option<Self> {
        const QUEUES_MAX: usize = 1 << 26;
        const ENTROPY_BITS_MAX: f64 = 60.0;
        if hand_size == 0 || hand_size > queues.min(MAX_HAND_SIZE) || queues > QUEUES_MAX {
            return None;
        }
        let ways = (0..hand_size).map(|dealt| crate::work::as_f64(queues - dealt).log2());
        (ways.sum::<f64>().ceil() <= ENTROPY_BITS_MAX).then_some(Self { queues, hand_size })
    }

    /// Chooses the queues of the flow with this hash. Writes different indexes of queues to `hand`,
    /// and returns how many.
    pub fn deal(&self, hash: u64, hand: &mut [usize; MAX_HAND_SIZE]) -> usize {
        let mut rest = hash;
        for (dealt, card) in hand.iter_mut().enumerate().take(self.hand_size) {
            let left = (self.queues - dealt) as u64;
            *card = usize::try_from(rest % left).unwrap_or_default();
            rest /= left;
        }
        let remainders = *hand;
        for dealt in 0..self.hand_size {
            for before in remainders[..dealt].iter().rev() {
                if hand[dealt] >= *before {
                    hand[dealt] += 1;
                }
            }
        }
        self.hand_size
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_hand_is_of_different_queues(queues in 1_usize..512, size in 1_usize..8, hash: u64) {
            let Some(dealer) = Dealer::new(queues, size) else { return Ok(()) };
            let mut hand = [0; MAX_HAND_SIZE];
            let dealt = dealer.deal(hash, &mut hand);
            let different: BTreeSet<_> = hand[..dealt].iter().copied().collect();
            prop_assert_eq!(different.len(), size);
            prop_assert!(different.iter().all(|queue| *queue < queues));
        }

        /// A naive model: cards are drawn from a deck one by one.
        #[test]
        fn a_hand_equals_a_draw_from_a_deck(queues in 1_usize..64, size in 1_usize..8, hash: u64) {
            let Some(dealer) = Dealer::new(queues, size) else { return Ok(()) };
            let mut hand = [0; MAX_HAND_SIZE];
            let dealt = dealer.deal(hash, &mut hand);
            let mut deck: Vec<usize> = (0..queues).collect();
            let mut rest = hash;
            for card in &hand[..dealt] {
                let left = deck.len() as u64;
                prop_assert_eq!(*card, deck.remove(usize::try_from(rest % left).unwrap()));
                rest /= left;
            }
        }
    }

    #[test]
    fn impossible_hands_are_refused() {
        assert_eq!(Dealer::new(4, 5), None);
        assert_eq!(Dealer::new(4, 0), None);
        assert_eq!(Dealer::new(0, 0), None);
        assert_eq!(Dealer::new(1 << 27, 1), None);
        assert_eq!(Dealer::new(1 << 20, 4), None);
        assert!(Dealer::new(64, 6).is_some());
    }
}
