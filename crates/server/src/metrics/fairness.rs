//! Writes the metrics of priority and fairness.

use pintle_fairness::SeatSeconds;
use pintle_measure::Distribution;

use super::families as f;
use super::family::{Family, Page};
use crate::fairness::{Fairness, FlowMeasures, FlowState, LevelState, REJECTIONS};

/// A family with one value per level.
type OfLevel = (&'static Family, fn(&LevelState) -> f64);
/// A family with two values per level.
type BoundsOfLevel = (&'static Family, fn(&LevelState) -> (SeatSeconds, SeatSeconds));
/// A family with one value per flow schema.
type OfFlow = (&'static Family, fn(&FlowState) -> usize);
/// A family with a distribution per flow schema.
type Distributed = (&'static Family, fn(&FlowMeasures) -> &Distribution);

const LEVELS: [OfLevel; 12] = [
    (&f::LEVEL_LIMIT, |level| level.seats(level.current)),
    (&f::LEVEL_R, |level| level.r.to_f64()),
    (&f::DEMAND_AVERAGE, |level| level.demand.average),
    (&f::DEMAND_HIGH, |level| level.seats(level.demand.high_watermark)),
    (&f::DEMAND_SMOOTHED, |level| level.demand.smoothed),
    (&f::DEMAND_DEVIATION, |level| level.demand.deviation),
    (&f::DISPATCH_R, |level| level.dispatch.r.to_f64()),
    (&f::LATEST_S, |level| level.dispatch.start.to_f64()),
    (&f::LEVEL_MIN, |level| level.seats(level.limits.min)),
    (&f::LEVEL_NOMINAL, |level| level.seats(level.limits.nominal)),
    (&f::LEVEL_TARGET, |level| level.target),
    (&f::LEVEL_MAX, |level| level.seats(level.limits.max)),
];

const BOUNDS: [BoundsOfLevel; 2] = [
    (&f::NEXT_DISCOUNTED_S, |level| level.dispatch.discounted),
    (&f::NEXT_S, |level| level.dispatch.bounds),
];

const FLOWS: [OfFlow; 4] = [
    (&f::FLOW_EXECUTING, |flow| flow.executing),
    (&f::FLOW_EXECUTING_SEATS, |flow| flow.executing_seats),
    (&f::FLOW_WAITING, |flow| flow.waiting),
    (&f::FLOW_WAITING_SEATS, |flow| flow.waiting_seats),
];

const DISTRIBUTIONS: [Distributed; 3] = [
    (&f::QUEUE_LENGTH, |flow| &flow.queue_length),
    (&f::WATCH_COUNT, |flow| &flow.watch_count),
    (&f::ESTIMATED_SEATS, |flow| &flow.estimated_seats),
];

/// Writes all metrics of priority and fairness.
pub(super) fn write(fairness: &Fairness, page: &mut Page) {
    let levels = fairness.levels();
    for (family, number) in LEVELS {
        let mut samples = page.family(family);
        levels.iter().for_each(|level| samples.value(&[&level.name], number(level)));
    }
    for (family, bounds) in BOUNDS {
        let mut samples = page.family(family);
        for level in &levels {
            let (least, greatest) = bounds(level);
            samples.value(&["max", &level.name], greatest.to_f64());
            samples.value(&["min", &level.name], least.to_f64());
        }
    }
    page.single(&f::FAIR_FRACTION, fairness.fair_fraction());
    let flows = fairness.flow_states();
    for (family, number) in FLOWS {
        let mut samples = page.family(family);
        for ([schema, level], flow) in &flows {
            samples.value(&[schema, level], number(flow));
        }
    }
    write_flows(fairness, page);
}

fn write_flows(fairness: &Fairness, page: &mut Page) {
    let flows = fairness.flows();
    let mut dispatched = page.family(&f::DISPATCHED);
    for ([schema, level], flow) in &flows {
        dispatched.value(&[schema, level], flow.dispatched.get());
    }
    let mut rejected = page.family(&f::REJECTED_FLOW);
    for ([schema, level], flow) in &flows {
        let counts = REJECTIONS.iter().zip(flow.rejected()).filter(|(_, count)| *count > 0);
        counts.for_each(|(why, count)| rejected.value(&[schema, level, why.name()], count));
    }
    for (family, distribution) in DISTRIBUTIONS {
        let mut samples = page.family(family);
        for ([schema, level], flow) in &flows {
            let observed = distribution(flow).observed();
            if observed.count() > 0 {
                samples.distribution(&[schema, level], &observed);
            }
        }
    }
    let mut waited = page.family(&f::WAITED);
    for ([schema, level], flow) in &flows {
        for (execute, waits) in ["true", "false"].iter().zip(&flow.waited) {
            let observed = waits.observed();
            if observed.count() > 0 {
                waited.distribution(&[execute, schema, level], &observed);
            }
        }
    }
    let mut executed = page.family(&f::EXECUTION);
    for ([schema, level], flow) in &flows {
        for (kind, executions) in ["watch", "regular"].iter().zip(&flow.executed) {
            let observed = executions.observed();
            if observed.count() > 0 {
                executed.distribution(&[schema, level, kind], &observed);
            }
        }
    }
}
