//! Indexed jobs: how large they may be, and texts such as `0,2-5` that name some of their indexes.

use crate::field::{Errors, Field};

/// The number of completions above which a job with a high parallelism is hard to track.
pub(super) const COMPLETIONS_HIGH: i64 = 100_000;
/// The parallelism that is high for so many completions.
pub(super) const PARALLELISM_HIGH: i64 = 10_000;
const PARALLELISM_MAX: i64 = 100_000;
const FAILED_MAX: i64 = 100_000;
const FAILED_HIGH: i64 = 10_000;

/// Checks the numbers that depend on the completion mode.
pub(super) fn check_numbers(spec: &Field<'_>, errors: &mut Errors) {
    let per_index = spec.get("backoffLimitPerIndex");
    let failed = spec.get("maxFailedIndexes");
    if !super::is_indexed(spec) {
        if !spec.has("completionMode") || spec.str("completionMode") == "NonIndexed" {
            let set = [&per_index, &failed].into_iter().filter(|field| field.is_set());
            errors.extend(set.map(|field| field.invalid("requires indexed completion mode")));
        }
        return;
    }
    let (completions, parallelism) = (spec.get("completions"), spec.get("parallelism"));
    let above = |field: &Field<'_>, most: i64| field.int().is_some_and(|number| number > most);
    if !completions.is_set() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    if above(&parallelism, PARALLELISM_MAX) {
        errors.push(parallelism.invalid(format!(
            "must be less than or equal to {PARALLELISM_MAX} when completion mode is Indexed"
        )));
    }
    if completions.int().is_some_and(|completions| above(&failed, completions)) {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
    if above(&failed, FAILED_MAX) {
        errors.push(failed.invalid(format!("must be less than or equal to {FAILED_MAX}")));
    }
    if !above(&completions, COMPLETIONS_HIGH) || !per_index.is_set() {
        return;
    }
    if !failed.is_set() {
        let words = format!("must be specified when completions is above {COMPLETIONS_HIGH}");
        errors.push(failed.required(&words));
    }
    for (field, most) in [(&parallelism, PARALLELISM_HIGH), (&failed, FAILED_HIGH)] {
        if above(field, most) {
            errors.push(field.invalid(format!(
                "must be less than or equal to {most} when completions are above \
                 {COMPLETIONS_HIGH} and used with backoff limit per index"
            )));
        }
    }
}

/// An interval of indexes, both ends included.
pub(super) type Interval = (i64, i64);

/// Returns the number of indexes in the intervals of a text, all of which must be below
/// `completions`.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut last: Option<i64> = None;
    let mut total = 0;
    for part in text.split(',') {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The valid intervals of a text.
pub(super) fn intervals(text: &str, completions: i64) -> impl Iterator<Item = Interval> {
    text.split(',').filter_map(move |part| interval(part, completions).ok())
}

fn interval(text: &str, completions: i64) -> Result<Interval, String> {
    let ends: Vec<&str> = text.split('-').collect();
    if ends.len() > 2 {
        return Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at \
             most two parts separated by '-'"
        ));
    }
    let read = |text: &str| {
        text.parse::<i64>()
            .ok()
            .filter(|_| !text.starts_with('+'))
            .ok_or_else(|| format!("cannot convert string to integer for index: {text:?}"))
    };
    let first = read(ends[0])?;
    check_index(first, completions)?;
    let Some(end) = ends.get(1) else { return Ok((first, first)) };
    let last = read(end)?;
    check_index(last, completions)?;
    if first >= last {
        return Err(format!("non-increasing order, previous: {first}, current: {last}"));
    }
    Ok((first, last))
}

fn check_index(index: i64, completions: i64) -> Result<(), String> {
    if index >= completions {
        Err(format!("too large index: {:?}", index.to_string()))
    } else {
        Ok(())
    }
}
