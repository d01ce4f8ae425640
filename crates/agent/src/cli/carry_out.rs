//! Does a whole job on this host, as in a guest.

use crate::init::channel;
use crate::job::Plan;
use crate::programs::{self, Surroundings};
use crate::session;
use crate::sink::Sink;

/// Its tests, then its programs. There is no shell and there are no counters: those need a guest.
pub fn job(path: &str) -> Result<(), String> {
    let plan = Plan::read(path)?;
    let sink = Sink::new(channel::open(&plan.channel, false)?).map_err(|failure| failure.to_string())?;
    session::tests(&plan, &sink, |_| ())?;
    programs::run_all(&plan, Surroundings::of_host(), &sink)?;
    sink.end();
    Ok(())
}
