//! API Priority and Fairness decides which requests are executed, which wait in a queue, and which
//! are rejected.
//!
//! Flow schemas ([`FlowSchema`]) assign requests to priority levels. Each level has a limit on the
//! seats of its executing requests, and a [`QueueSet`] that shares them fairly between flows.
//! [`limits`] divides the server's seats among the levels, [`borrow`] lends unused seats to other
//! levels, and [`estimate`] computes the seats of a request.
//!
//! Must not know where objects are stored, HTTP, or how a request waits. There is no clock: time is
//! an argument, the duration since an origin that the caller chooses, and never decreases.
//!
//! Invariants:
//! - The seats in use of a level that is not exempt never exceed its limit, with two exceptions: a
//!   request that is wider than the limit is executed alone, and a limit can be lowered while
//!   requests are executing.
//! - A waiting request is executed once seats are free: no queue starves.
//!
//! Names and numbers are upstream's (k8s.io/apiserver/pkg/util/flowcontrol).

mod allocation;
mod dealer;
mod demand;
pub mod estimate;
mod flow_schema;
mod level;
mod queue_set;
mod retry_after;
mod watches;
mod work;

pub use allocation::{Bounds, Infeasible, allocate};
pub use dealer::{Dealer, MAX_HAND_SIZE};
pub use demand::{Demand, Integrator, Observed};
pub use flow_schema::{
    CATCH_ALL, Distinguisher, EXEMPT, FlowSchema, NonResourceRule, PolicyRule, ResourceRule,
    Subject, flow_hash, in_order,
};
pub use level::{Adjusted, Level, Limits, Shares, borrow, limits, max_seats};
pub use queue_set::{
    Arrival, Arriving, Counts, Discipline, Dispatched, Finished, QueueSet, QueueState, Rejection,
    RequestState, Ticket,
};
pub use retry_after::RetryAfter;
pub use watches::{Watched, Watches};
pub use work::{SeatSeconds, WorkEstimate};
