//! Divides a sum among classes in proportion to their targets, within bounds.

use crate::work::as_f64;

/// The minimum target; a target of 0 counts as this.
const TARGET_MIN: f64 = 0.001;
const EPSILON: f64 = 0.000_000_1;

/// The bounds of a class. `0 <= lower <= target`, `lower <= upper`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The minimum.
    pub lower: f64,
    /// The maximum.
    pub upper: f64,
    /// The target, which determines the proportion.
    pub target: f64,
}

/// Why a sum cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Infeasible {
    /// The bounds of a class contradict each other.
    Bounds,
    /// The lower bounds add up to more than the sum.
    TooLittle,
    /// The upper bounds add up to less than the sum.
    TooMuch,
}

/// Divides `sum` among `classes`. Returns the part of each class, and the fraction of its target
/// that every class gets unless a bound applies (upstream: `computeConcurrencyAllocation`).
pub fn allocate(sum: usize, classes: &[Bounds]) -> Result<(Vec<f64>, f64), Infeasible> {
    let sum = as_f64(sum);
    let is_invalid =
        |c: &Bounds| c.lower < 0.0 || c.target < c.lower || c.upper < c.lower || c.target.is_nan();
    if classes.iter().any(is_invalid) {
        return Err(Infeasible::Bounds);
    }
    let lowest: f64 = classes.iter().map(|class| class.lower).sum();
    let highest: f64 = classes.iter().map(|class| class.upper).sum();
    if lowest - sum > EPSILON {
        return Err(Infeasible::TooLittle);
    }
    if sum - highest > EPSILON {
        return Err(Infeasible::TooMuch);
    }
    if sum == 0.0 {
        return Ok((vec![0.0; classes.len()], 0.0));
    }
    let fraction = fraction(sum, classes);
    let parts = classes.iter().map(|class| class.at(fraction)).collect();
    Ok((parts, fraction))
}

/// The smallest fraction of the targets at which the parts amount to the sum.
fn fraction(sum: f64, classes: &[Bounds]) -> f64 {
    // The points where the slope of the total changes, because a class starts or stops growing.
    let mut bends: Vec<(f64, f64)> = classes
        .iter()
        .flat_map(|class| {
            let target = class.target();
            [(class.lower / target, target), (class.upper / target, -target)]
        })
        .collect();
    bends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut given: f64 = classes.iter().map(|class| class.lower).sum();
    let mut fraction = bends.first().map_or(0.0, |bend| bend.0);
    let mut growing = 0.0;
    for (bend, change) in bends {
        let at_bend = given + growing * (bend - fraction);
        if at_bend >= sum && growing > 0.0 {
            return fraction + (sum - given) / growing;
        }
        if given >= sum {
            return fraction;
        }
        (given, fraction) = (at_bend, bend);
        growing += change;
    }
    fraction
}

impl Bounds {
    const fn target(&self) -> f64 {
        self.target.max(TARGET_MIN)
    }

    /// The part of the class at a fraction of the targets.
    fn at(&self, fraction: f64) -> f64 {
        (fraction * self.target()).min(self.upper).max(self.lower)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class() -> impl Strategy<Value = Bounds> {
        (0_u32..100, 0_u32..100, 0_u32..300).prop_map(|(lower, more, above)| Bounds {
            lower: f64::from(lower),
            upper: f64::from(lower + above),
            target: f64::from(lower + more),
        })
    }

    proptest! {
        /// Upstream's guarantees for the result.
        #[test]
        fn each_gets_its_fraction_or_its_bound(
            classes in prop::collection::vec(class(), 1..12), sum in 0_usize..2000,
        ) {
            let Ok((given, fraction)) = allocate(sum, &classes) else {
                let low: f64 = classes.iter().map(|c| c.lower).sum();
                let high: f64 = classes.iter().map(|c| c.upper).sum();
                prop_assert!(as_f64(sum) < low || as_f64(sum) > high);
                return Ok(());
            };
            let total: f64 = given.iter().sum();
            prop_assert!((total - as_f64(sum)).abs() < 0.001, "{total} of {sum}");
            for (class, given) in classes.iter().zip(given).filter(|_| sum > 0) {
                prop_assert!(class.lower <= given && given <= class.upper);
                let fair = fraction * class.target();
                let is_fair = (given - fair).abs() < 0.001;
                let is_bound = given == class.lower && fair < given || given == class.upper && fair > given;
                prop_assert!(is_fair || is_bound, "{class:?} gets {given}, fair is {fair}");
            }
        }
    }

    #[test]
    fn sums_outside_the_bounds_are_refused() {
        let one = Bounds { lower: 2.0, upper: 3.0, target: 2.0 };
        assert_eq!(allocate(1, &[one]), Err(Infeasible::TooLittle));
        assert_eq!(allocate(4, &[one]), Err(Infeasible::TooMuch));
        assert_eq!(allocate(2, &[Bounds { target: 1.0, ..one }]), Err(Infeasible::Bounds));
        assert_eq!(allocate(2, &[one]).unwrap().0, [2.0]);
        assert_eq!(allocate(3, &[one]).unwrap().0, [3.0]);
    }
}
