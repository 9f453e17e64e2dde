//! Measures of calls of webhooks, by host.

use std::borrow::Cow;
use std::time::Duration;

use pintle_measure::{Counter, Distribution, Series, nanoseconds};
use pintle_registry::webhook::{Conversion, ConversionFailure};

/// Upstream's buckets of calls.
pub(crate) static CALL_BOUNDS: [u64; 12] =
    nanoseconds([0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]);
/// Upstream's buckets of bodies, in bytes.
pub(crate) static CALL_SIZE_BOUNDS: [u64; 11] =
    [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

/// Upstream's buckets of conversions by result.
pub(crate) static CONVERSION_BOUNDS: [u64; 15] = nanoseconds([
    0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0,
]);
/// Upstream's buckets of conversions by definition.
pub(crate) static DEFINITION_BOUNDS: [u64; 15] = nanoseconds([
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
    8.192, 16.384,
]);

/// The verb of every call.
pub(crate) const VERB: &str = "POST";
/// The label `code` without a response.
const NO_ANSWER: &str = "<error>";

/// Measures of calls. Hosts are those of webhook configurations.
pub(crate) struct Calls {
    /// By code and host.
    pub(crate) answers: Series<2, Counter>,
    /// Retries after `Retry-After`, by code and host.
    pub(crate) retries: Series<2, Counter>,
    /// By host, as the sizes below are.
    pub(crate) durations: Series<1, Distribution>,
    pub(crate) request_sizes: Series<1, Distribution>,
    pub(crate) response_sizes: Series<1, Distribution>,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            answers: Series::default(),
            retries: Series::default(),
            durations: Series::new(|| Distribution::new(&CALL_BOUNDS)),
            request_sizes: Series::new(|| Distribution::new(&CALL_SIZE_BOUNDS)),
            response_sizes: Series::new(|| Distribution::new(&CALL_SIZE_BOUNDS)),
        }
    }
}

impl Calls {
    /// Counts a request with the time until its response began or failed.
    pub(super) fn sent(&self, host: &str, code: Option<u16>, bytes: usize, took: Duration) {
        self.answers.with([&label(code), host]).add(1);
        self.durations.with([host]).took(took);
        self.request_sizes.with([host]).observe(bytes as u64);
    }

    /// Counts a retry.
    pub(super) fn retried(&self, host: &str, code: Option<u16>) {
        self.retries.with([&label(code), host]).add(1);
    }

    /// Counts the body of a response.
    pub(super) fn received(&self, host: &str, bytes: usize) {
        self.response_sizes.with([host]).observe(bytes as u64);
    }
}

fn label(code: Option<u16>) -> Cow<'static, str> {
    code.map_or(NO_ANSWER.into(), |code| code.to_string().into())
}

/// Measures of conversions. Labels are sorted by name, as upstream's.
pub(crate) struct Conversions {
    /// Durations by failure type and result.
    pub(crate) outcomes: Series<2, Distribution>,
    /// Durations by definition, source version, success and target version, if the versions differ.
    pub(crate) definitions: Series<4, Distribution>,
}

impl Default for Conversions {
    fn default() -> Self {
        Self {
            outcomes: Series::new(|| Distribution::new(&CONVERSION_BOUNDS)),
            definitions: Series::new(|| Distribution::new(&DEFINITION_BOUNDS)),
        }
    }
}

impl Conversions {
    /// Counts a conversion.
    pub(super) fn ended(&self, conversion: &Conversion<'_>, took: Duration) {
        let Conversion { definition, from, to, failure } = *conversion;
        let (why, result) = match failure {
            None => ("", "success"),
            Some(failure) => (failure_type(failure), "failure"),
        };
        self.outcomes.with([why, result]).took(took);
        if from != to {
            let succeeded = if failure.is_none() { "true" } else { "false" };
            self.definitions.with([definition, from, succeeded, to]).took(took);
        }
    }
}

/// Upstream's label values.
const fn failure_type(failure: ConversionFailure) -> &'static str {
    match failure {
        ConversionFailure::Call => "conversion_webhook_call_failure",
        ConversionFailure::MalformedResponse => "conversion_webhook_malformed_response_failure",
        ConversionFailure::PartialResponse => "conversion_webhook_partial_response_failure",
        ConversionFailure::InvalidConvertedObject => {
            "conversion_webhook_invalid_converted_object_failure"
        }
    }
}
