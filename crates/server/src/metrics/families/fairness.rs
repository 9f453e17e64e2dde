//! Families of priority and fairness.

use super::Stability::{Alpha, Beta};
use super::{Family, Labels, counter, families, gauge, seconds, whole};
use crate::fairness::{
    FLOW_DURATION_BOUNDS, QUEUE_LENGTH_BOUNDS, SEATS_BOUNDS, WATCH_COUNT_BOUNDS,
};

const FLOW: Labels = &["flow_schema", "priority_level"];
const LEVEL: Labels = &["priority_level"];
const BOUND: Labels = &["bound", "priority_level"];

families! {
    IN_QUEUE = gauge("apiserver_current_inqueue_requests", Alpha, &["request_kind"],
        "Requests that wait in queues, read-only and mutating.");
    FLOW_EXECUTING = gauge("apiserver_flowcontrol_current_executing_requests", Beta, FLOW,
        "Requests in execution; watches count until their initial events are sent.");
    FLOW_EXECUTING_SEATS = gauge("apiserver_flowcontrol_current_executing_seats", Beta, FLOW,
        "Seats of requests in execution, and of writes whose watch events are being sent.");
    FLOW_WAITING = gauge("apiserver_flowcontrol_current_inqueue_requests", Beta, FLOW,
        "Requests that wait in queues.");
    FLOW_WAITING_SEATS = gauge("apiserver_flowcontrol_current_inqueue_seats", Alpha, FLOW,
        "Seats that requests in queues wait for.");
    LEVEL_LIMIT = gauge("apiserver_flowcontrol_current_limit_seats", Alpha, LEVEL,
        "Current concurrency limit of a level, in seats.");
    LEVEL_R = gauge("apiserver_flowcontrol_current_r", Alpha, LEVEL,
        "The virtual time R of a level, in seat-seconds.");
    DEMAND_AVERAGE = gauge("apiserver_flowcontrol_demand_seats_average", Alpha, LEVEL,
        "The average demand for seats in the last period of adjustment.");
    DEMAND_HIGH = gauge("apiserver_flowcontrol_demand_seats_high_watermark", Alpha, LEVEL,
        "The highest demand for seats in the last period of adjustment.");
    DEMAND_SMOOTHED = gauge("apiserver_flowcontrol_demand_seats_smoothed", Alpha, LEVEL,
        "The smoothed demand for seats, which rises at once and falls slowly.");
    DEMAND_DEVIATION = gauge("apiserver_flowcontrol_demand_seats_stdev", Alpha, LEVEL,
        "The standard deviation of the demand for seats in the last period of adjustment.");
    DISPATCH_R = gauge("apiserver_flowcontrol_dispatch_r", Alpha, LEVEL,
        "The virtual time R at the last dispatch of a request.");
    DISPATCHED = counter("apiserver_flowcontrol_dispatched_requests_total", Beta, FLOW,
        "Requests that were executed.");
    LATEST_S = gauge("apiserver_flowcontrol_latest_s", Alpha, LEVEL,
        "The virtual start time S of the last dispatched request.");
    LEVEL_MIN = gauge("apiserver_flowcontrol_lower_limit_seats", Alpha, LEVEL,
        "Minimum concurrency limit of a level: after it has lent all it can.");
    NEXT_DISCOUNTED_S = gauge("apiserver_flowcontrol_next_discounted_s_bounds", Alpha, BOUND,
        "Minimum and maximum, over queues, of S of the next request less the work in progress.");
    NEXT_S = gauge("apiserver_flowcontrol_next_s_bounds", Alpha, BOUND,
        "Minimum and maximum, over queues, of S of the next request.");
    LEVEL_NOMINAL = gauge("apiserver_flowcontrol_nominal_limit_seats", Beta, LEVEL,
        "Nominal concurrency limit of a level, from its shares.");
    REJECTED_FLOW = counter("apiserver_flowcontrol_rejected_requests_total", Beta,
        &["flow_schema", "priority_level", "reason"],
        "Requests that were rejected.");
    EXECUTION = seconds("apiserver_flowcontrol_request_execution_seconds", Alpha,
        &["flow_schema", "priority_level", "type"], &FLOW_DURATION_BOUNDS,
        "How long requests were executed; watches until their initial events were sent.");
    QUEUE_LENGTH = whole("apiserver_flowcontrol_request_queue_length_after_enqueue", Alpha, FLOW,
        &QUEUE_LENGTH_BOUNDS,
        "Length of a queue after a request was added to it.");
    WAITED = seconds("apiserver_flowcontrol_request_wait_duration_seconds", Beta,
        &["execute", "flow_schema", "priority_level"], &FLOW_DURATION_BOUNDS,
        "How long requests waited in queues.");
    FAIR_FRACTION = gauge("apiserver_flowcontrol_seat_fair_frac", Alpha, &[],
        "The fraction of its target that each level gets, unless its minimum or maximum applies.");
    LEVEL_TARGET = gauge("apiserver_flowcontrol_target_seats", Alpha, LEVEL,
        "The seat demand target of a level.");
    LEVEL_MAX = gauge("apiserver_flowcontrol_upper_limit_seats", Alpha, LEVEL,
        "Maximum concurrency limit of a level: after it has borrowed all it can.");
    WATCH_COUNT = whole("apiserver_flowcontrol_watch_count_samples", Alpha, FLOW,
        &WATCH_COUNT_BOUNDS,
        "Number of watches that a write concerns.");
    ESTIMATED_SEATS = whole("apiserver_flowcontrol_work_estimated_seats", Alpha, FLOW,
        &SEATS_BOUNDS,
        "Estimated seats of a request.");
}
