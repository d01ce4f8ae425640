//! lat_sig: install a signal handler, and be interrupted by it.
//!
//! LMBench subtracts the cost of a kill(2) that sends no signal from that of a delivery; here nothing is subtracted.

use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Stop, check};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::sync::atomic::{AtomicU64, Ordering};

pub static TEST: Test = Test {
    name: "lat_sig",
    suite: Some(Suite::Lmbench),
    description: "install a signal handler, deliver a signal to it",
    params: &[],
    metrics: &[
        Metric {
            suffix: "install",
            kind: Kind::Latency,
            description: "sigaction, which also tells the action before",
            model_operations: 100,
            run: install,
        },
        Metric {
            suffix: "deliver",
            kind: Kind::Latency,
            description: "kill oneself with SIGUSR1, run the handler, return from it",
            model_operations: 32,
            run: deliver,
        },
    ],
};

static CAUGHT: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    CAUGHT.fetch_add(1, Ordering::Relaxed);
}

fn handler() -> libc::sigaction {
    // SAFETY: all bits 0 is an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = count as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action
}

/// Install an action for SIGUSR1, and store the previous one in `before`.
#[inline]
fn install_once(action: &libc::sigaction, before: &mut libc::sigaction) -> Result<(), Stop> {
    // SAFETY: the handler only adds to an atomic.
    check("sigaction()", unsafe { libc::sigaction(libc::SIGUSR1, action, before) })?;
    Ok(())
}

fn install(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let (action, mut before) = (handler(), handler());
    recorder.measure(|installs| {
        for _ in 0..installs {
            install_once(&action, &mut before)?;
        }
        Ok(installs)
    })
}

fn deliver(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    install_once(&handler(), &mut handler())?;
    let me = std::process::id() as libc::pid_t;
    recorder.measure(|signals| {
        let before = CAUGHT.load(Ordering::Relaxed);
        for _ in 0..signals {
            // SAFETY: no pointers. A signal to oneself is delivered before kill returns.
            check("kill()", unsafe { libc::kill(me, libc::SIGUSR1) })?;
        }
        match CAUGHT.load(Ordering::Relaxed) - before {
            caught if caught == signals => Ok(signals),
            caught => Err(Stop::Broken(format!("{caught} of {signals} signals were delivered"))),
        }
    })
}
