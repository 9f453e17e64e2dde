//! Reads the body of a patch.

use pintle_schema::{PROBLEMS_MAX, Problem};

pub(crate) use pintle_schema::decode::duplicates::read;

/// Returns the problems as texts for the client.
pub(crate) fn texts(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// Adds a problem unless it is already in the list or the list is full.
pub(crate) fn push(problems: &mut Vec<Problem>, problem: Problem) {
    if problems.len() < PROBLEMS_MAX && !problems.contains(&problem) {
        problems.push(problem);
    }
}
