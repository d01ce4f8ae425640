//! Does a whole job on this host, as in a guest; nothing of it is left when it has ended or was killed.

use crate::init::channel;
use crate::job::Plan;
use crate::programs::{self, Surroundings, leftovers};
use crate::session;
use crate::sink::Sink;

/// Run the tests, then the programs of a job. There is no shell and there are no counters: those need a guest.
pub fn job(path: &str) -> Result<(), String> {
    let plan = Plan::read(path)?;
    leftovers::outlive().map_err(|failure| failure.to_string())?;
    let sink = Sink::new(channel::open(&plan.channel, false)?).map_err(|failure| failure.to_string())?;
    session::tests(&plan, &sink, |_| ())?;
    programs::run_all(&plan, Surroundings::of_host(), &sink)?;
    sink.end();
    Ok(())
}
