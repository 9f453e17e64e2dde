//! The state of levels and flow schemas, for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_fairness::{Demand, Dispatched, Limits, SeatSeconds};

use super::{Fairness, FlowMeasures};

/// The state of a priority level.
pub(crate) struct LevelState {
    pub(crate) name: String,
    pub(crate) limits: Limits,
    pub(crate) current: usize,
    pub(crate) demand: Demand,
    pub(crate) target: f64,
    pub(crate) r: SeatSeconds,
    pub(crate) dispatch: Dispatched,
}

/// The waiting and running requests of a flow schema.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowState {
    pub(crate) executing: usize,
    pub(crate) executing_seats: usize,
    pub(crate) waiting: usize,
    pub(crate) waiting_seats: usize,
}

/// The numbers of mutating and of read-only requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kinds {
    pub(crate) mutating: usize,
    pub(crate) read_only: usize,
}

/// The names of a flow schema and its level.
type FlowName = [Box<str>; 2];

impl Fairness {
    /// The levels sorted by name.
    pub(crate) fn levels(&self) -> Vec<LevelState> {
        let state = self.state.read();
        let levels = state.levels.values().map(|entry| {
            let (r, dispatch) = entry.level.look(|set| (set.r(), *set.last_dispatch()));
            LevelState {
                name: entry.spec.name.clone(),
                limits: entry.limits,
                current: entry.current,
                demand: entry.demand,
                target: entry.target,
                r,
                dispatch,
            }
        });
        levels.collect()
    }

    /// The measures of each flow schema that had requests, by level.
    pub(crate) fn flows(&self) -> Vec<(FlowName, Arc<FlowMeasures>)> {
        let mut flows = self.flows.all();
        flows.retain(|(_, flow)| flow.is_used());
        flows
    }

    /// The waiting and running requests of each flow schema, by level.
    pub(crate) fn flow_states(&self) -> BTreeMap<FlowName, FlowState> {
        let mut flows: BTreeMap<FlowName, FlowState> =
            self.flows().into_iter().map(|(name, _)| (name, FlowState::default())).collect();
        for entry in self.state.read().levels.values() {
            entry.level.look(|set| {
                for request in set.requests() {
                    let class = &request.known_by.class;
                    let name =
                        [&class.schema.name, &entry.spec.name].map(|name| name.as_str().into());
                    let flow = flows.entry(name).or_default();
                    let seats = request.estimate.max_seats();
                    if request.position.is_some() {
                        flow.waiting += 1;
                        flow.waiting_seats += seats;
                    } else {
                        flow.executing += usize::from(!request.is_finished);
                        flow.executing_seats += seats;
                    }
                }
            });
        }
        flows
    }

    /// The running and waiting requests, read-only and mutating.
    pub(crate) fn kinds(&self) -> [Kinds; 2] {
        let mut kinds = [Kinds::default(); 2];
        for entry in self.state.read().levels.values() {
            entry.level.look(|set| {
                for request in set.requests().iter().filter(|request| !request.is_finished) {
                    let kinds = &mut kinds[usize::from(request.position.is_some())];
                    match request.known_by.info.read_only() {
                        true => kinds.read_only += 1,
                        false => kinds.mutating += 1,
                    }
                }
            });
        }
        kinds
    }

    /// The fraction of its target that each level without a binding limit got.
    #[expect(clippy::cast_precision_loss, reason = "a small fraction")]
    pub(crate) fn fair_fraction(&self) -> f64 {
        self.fair_fraction.get() as f64 / 1e6
    }
}

impl LevelState {
    /// Converts a number of seats for metrics.
    #[expect(clippy::cast_precision_loss, reason = "numbers of seats are small")]
    pub(crate) const fn seats(&self, seats: usize) -> f64 {
        seats as f64
    }
}
