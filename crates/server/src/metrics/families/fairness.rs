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
        "Requests that wait for seats, by whether they change something.");
    FLOW_EXECUTING = gauge("apiserver_flowcontrol_current_executing_requests", Beta, FLOW,
        "Requests that are executed; watches until their initial events are made.");
    FLOW_EXECUTING_SEATS = gauge("apiserver_flowcontrol_current_executing_seats", Beta, FLOW,
        "Seats of requests that are executed, and of writes whose events are under way.");
    FLOW_WAITING = gauge("apiserver_flowcontrol_current_inqueue_requests", Beta, FLOW,
        "Requests that wait in queues.");
    FLOW_WAITING_SEATS = gauge("apiserver_flowcontrol_current_inqueue_seats", Alpha, FLOW,
        "Seats that requests in queues wait for.");
    LEVEL_LIMIT = gauge("apiserver_flowcontrol_current_limit_seats", Alpha, LEVEL,
        "Seats that the requests of a level may take until the next adjustment.");
    LEVEL_R = gauge("apiserver_flowcontrol_current_r", Alpha, LEVEL,
        "The progress meter of a level, in seat-seconds.");
    DEMAND_AVERAGE = gauge("apiserver_flowcontrol_demand_seats_average", Alpha, LEVEL,
        "The average demand for seats in the last period of adjustment.");
    DEMAND_HIGH = gauge("apiserver_flowcontrol_demand_seats_high_watermark", Alpha, LEVEL,
        "The highest demand for seats in the last period of adjustment.");
    DEMAND_SMOOTHED = gauge("apiserver_flowcontrol_demand_seats_smoothed", Alpha, LEVEL,
        "The demand for seats, which falls slowly.");
    DEMAND_DEVIATION = gauge("apiserver_flowcontrol_demand_seats_stdev", Alpha, LEVEL,
        "The standard deviation of the demand for seats in the last period of adjustment.");
    DISPATCH_R = gauge("apiserver_flowcontrol_dispatch_r", Alpha, LEVEL,
        "The progress meter when a request was last taken from a queue.");
    DISPATCHED = counter("apiserver_flowcontrol_dispatched_requests_total", Beta, FLOW,
        "Requests that were executed.");
    LATEST_S = gauge("apiserver_flowcontrol_latest_s", Alpha, LEVEL,
        "The reading of the meter at which the request was to be executed that was last taken from a queue.");
    LEVEL_MIN = gauge("apiserver_flowcontrol_lower_limit_seats", Alpha, LEVEL,
        "Seats of a level that has lent all it may.");
    NEXT_DISCOUNTED_S = gauge("apiserver_flowcontrol_next_discounted_s_bounds", Alpha, BOUND,
        "The least and the greatest of next_s_bounds over queues, less the work under way.");
    NEXT_S = gauge("apiserver_flowcontrol_next_s_bounds", Alpha, BOUND,
        "The least and the greatest reading, over queues, at which the next request is to be executed.");
    LEVEL_NOMINAL = gauge("apiserver_flowcontrol_nominal_limit_seats", Beta, LEVEL,
        "Seats of a level by its share.");
    REJECTED_FLOW = counter("apiserver_flowcontrol_rejected_requests_total", Beta,
        &["flow_schema", "priority_level", "reason"],
        "Requests that were rejected.");
    EXECUTION = seconds("apiserver_flowcontrol_request_execution_seconds", Alpha,
        &["flow_schema", "priority_level", "type"], &FLOW_DURATION_BOUNDS,
        "How long requests were executed; watches until their initial events were made.");
    QUEUE_LENGTH = whole("apiserver_flowcontrol_request_queue_length_after_enqueue", Alpha, FLOW,
        &QUEUE_LENGTH_BOUNDS,
        "How many requests waited in a queue, as each saw it that came to wait.");
    WAITED = seconds("apiserver_flowcontrol_request_wait_duration_seconds", Beta,
        &["execute", "flow_schema", "priority_level"], &FLOW_DURATION_BOUNDS,
        "How long requests waited.");
    FAIR_FRACTION = gauge("apiserver_flowcontrol_seat_fair_frac", Alpha, &[],
        "The fraction of its target that each level got which no bound held back.");
    LEVEL_TARGET = gauge("apiserver_flowcontrol_target_seats", Alpha, LEVEL,
        "Seats that a level was to get by its demand.");
    LEVEL_MAX = gauge("apiserver_flowcontrol_upper_limit_seats", Alpha, LEVEL,
        "Seats of a level that has borrowed all it may.");
    WATCH_COUNT = whole("apiserver_flowcontrol_watch_count_samples", Alpha, FLOW,
        &WATCH_COUNT_BOUNDS,
        "How many watches a write was of interest to.");
    ESTIMATED_SEATS = whole("apiserver_flowcontrol_work_estimated_seats", Alpha, FLOW,
        &SEATS_BOUNDS,
        "How many seats a request was expected to take.");
}
