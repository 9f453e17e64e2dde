//! API Priority and Fairness: which requests are executed now, which wait in a queue, and which are rejected.
//!
//! Purpose: flow schemas ([`FlowSchema`]) classify requests into priority levels. A level has a limit on
//! the seats that its executing requests take, and a [`QueueSet`] that shares them fairly between flows.
//! [`limits`] divides the server's seats among the levels, and [`borrow`] lends seats that a level
//! does not use. [`estimate`] says how many seats a request takes.
//!
//! Must not know: where objects are stored, HTTP, how a request waits. There is no clock: time is an
//! argument, as the duration since an origin that the caller chooses, and never goes back.
//!
//! Invariants:
//! - The seats in use of a level never exceed its limit, but for one request that is wider than the limit
//!   and is executed alone, and for a limit that was lowered while requests were executing.
//! - A request that waits is executed once seats are free: no queue is passed over for ever.
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
