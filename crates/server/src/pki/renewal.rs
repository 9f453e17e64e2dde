//! The serving certificate of a server that runs for long.

use std::path::PathBuf;
use std::time::SystemTime;

use super::authority::{Authority, Pair, Profile};
use crate::Error;

/// What renews the serving certificate while the server runs.
pub(crate) struct Renewal {
    pub(super) authority: Authority,
    pub(super) directory: Option<PathBuf>,
    /// What it is to say, and the one of now; `None` where it was given by flags.
    pub(super) serving: Option<(Profile, Pair)>,
}

impl Renewal {
    /// Another serving certificate, where that of now nears its end; warns of an authority that does.
    pub(crate) fn look(&mut self, now: SystemTime) -> Result<Option<&Pair>, Error> {
        self.authority.warn(now);
        let Some((profile, pair)) = &mut self.serving else { return Ok(None) };
        let directory = self.directory.as_deref();
        let Some(renewed) = self.authority.renewed(pair, directory, profile, now)? else {
            return Ok(None);
        };
        *pair = renewed;
        Ok(Some(pair))
    }
}
