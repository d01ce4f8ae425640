//! A run as the stream sees it: hello, then the tests.

use crate::job::Plan;
use crate::rest;
use crate::runner::{self, Planned};
use crate::settings::Settings;
use crate::sink::Sink;
use kdyno_proto::Record;
use std::ffi::CStr;
use std::fs;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn hello(settings: &Settings, sink: &Sink) {
    let init = std::process::id() == 1;
    sink.emit(&Record::Hello {
        agent: VERSION.into(),
        kernel: kernel_release(),
        lane: settings.lane,
        icount_shift: settings.icount_shift(),
        cpus: cpus_online(),
        init,
        indirect_target_selection: indirect_target_selection(),
        busy_tasks: if init { rest::wait() } else { None },
    });
}

/// Send hello, and run the tests of a job; `after` is called with the name of each when it is over.
pub fn tests(plan: &Plan, sink: &Sink, after: impl FnMut(&str)) -> Result<(), String> {
    if plan.measures() {
        plan.settings.clock.prove()?;
    }
    hello(&plan.settings, sink);
    run_all(&plan.tests, &plan.settings, sink, after);
    Ok(())
}

/// Run all tests; `after` is called with the name of each when it is over.
pub fn run_all(plan: &[Planned], settings: &Settings, sink: &Sink, mut after: impl FnMut(&str)) {
    let mut first = 0;
    for planned in plan {
        runner::run(planned, first, settings, sink);
        after(planned.test.name);
        first += planned.test.metrics.len() as u16;
    }
}

/// Return the release that `uname -r` prints.
fn kernel_release() -> String {
    // SAFETY: all bits 0 is a utsname, and uname(2) fills it with C strings.
    unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&mut names);
        CStr::from_ptr(names.release.as_ptr()).to_string_lossy().into_owned()
    }
}

/// Return the kernel's report on the fault, its first line; a kernel older than the fault has no such file.
fn indirect_target_selection() -> Option<String> {
    let text = fs::read_to_string("/sys/devices/system/cpu/vulnerabilities/indirect_target_selection").ok()?;
    text.lines().next().map(String::from)
}

fn cpus_online() -> u32 {
    // SAFETY: no pointers.
    u32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}
