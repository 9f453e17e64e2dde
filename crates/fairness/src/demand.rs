//! The demand of a level for seats over time.

use std::time::Duration;

use crate::work::rounded;

/// The smoothed demand falls by half in five minutes (upstream: `seatDemandSmoothingCoefficient`).
const SMOOTHING: f64 = 0.977;

/// A number, integrated over time.
#[derive(Clone, Debug)]
pub struct Integrator {
    last: Duration,
    value: f64,
    elapsed: f64,
    integral: f64,
    integral_of_squares: f64,
    max: f64,
}

/// Statistics of a number over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// The length of the period in seconds.
    pub duration: f64,
    /// The average over time.
    pub average: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The maximum.
    pub max: f64,
}

/// The demand of a level for seats at the last adjustment of the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// The average of the last period.
    pub average: f64,
    /// The standard deviation in the last period.
    pub deviation: f64,
    /// The maximum of the last period.
    pub high_watermark: usize,
    /// Follows a rising demand at once and a falling one slowly.
    pub smoothed: f64,
}

impl Integrator {
    /// Starts with the number 0.
    pub const fn new(now: Duration) -> Self {
        Self {
            last: now,
            value: 0.0,
            elapsed: 0.0,
            integral: 0.0,
            integral_of_squares: 0.0,
            max: 0.0,
        }
    }

    /// Sets the number.
    pub fn set(&mut self, now: Duration, value: f64) {
        self.advance(now);
        self.value = value;
        self.max = self.max.max(value);
    }

    /// The statistics since the last call.
    pub fn take(&mut self, now: Duration) -> Observed {
        self.advance(now);
        let (duration, max) = (self.elapsed, self.max);
        let average = if duration > 0.0 { self.integral / duration } else { 0.0 };
        let variance = if duration > 0.0 {
            self.integral_of_squares / duration - average * average
        } else {
            0.0
        };
        let value = self.value;
        *self = Self { value, max: value, ..Self::new(self.last) };
        Observed { duration, average, deviation: variance.max(0.0).sqrt(), max }
    }

    fn advance(&mut self, now: Duration) {
        let seconds = now.saturating_sub(self.last).as_secs_f64();
        self.last = self.last.max(now);
        self.elapsed += seconds;
        self.integral += self.value * seconds;
        self.integral_of_squares += self.value * self.value * seconds;
    }
}

impl Demand {
    /// Adds the statistics since the last adjustment.
    pub fn take(&mut self, observed: &Observed) {
        self.high_watermark = rounded(observed.max);
        if observed.duration <= 0.0 {
            return;
        }
        self.average = observed.average;
        self.deviation = observed.deviation;
        let envelope = observed.average + observed.deviation;
        let smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * envelope;
        self.smoothed = envelope.max(smoothed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_integrated_over_time() {
        let at = Duration::from_secs;
        let mut number = Integrator::new(at(10));
        number.set(at(11), 4.0);
        number.set(at(13), 1.0);
        let observed = number.take(at(14));
        assert_eq!(observed.duration, 4.0);
        assert_eq!(observed.average, (4.0 * 2.0 + 1.0) / 4.0);
        assert_eq!(observed.max, 4.0);
        let variance: f64 = (16.0 * 2.0 + 1.0) / 4.0 - 2.25 * 2.25;
        assert_eq!(observed.deviation, variance.sqrt());
        let next = number.take(at(16));
        assert_eq!((next.average, next.deviation, next.max), (1.0, 0.0, 1.0));
    }

    #[test]
    fn demand_rises_at_once_and_falls_slowly() {
        let observed = |average| Observed { duration: 10.0, average, deviation: 0.0, max: average };
        let mut demand = Demand::default();
        demand.take(&observed(100.0));
        assert_eq!((demand.smoothed, demand.high_watermark), (100.0, 100));
        for _ in 0..30 {
            demand.take(&observed(0.0));
        }
        assert!((demand.smoothed - 50.0).abs() < 1.0, "{demand:?}");
    }
}
