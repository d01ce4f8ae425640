//! Runs the tests, each benchmark in a process of its own: a crash is a record, not the end of the agent.

use crate::measure::{Clock, Recorder, Ticks};
use crate::params::Params;
use crate::processes::{self, Death};
use crate::settings::Settings;
use crate::sink::Sink;
use crate::sys::peer::{Fate, PEER_DIED, die_with};
use crate::sys::{Failure, Stop, check, cpu};
use crate::test::{Metric, Test};
use crate::watchdog::{still_alive, too_long};
use kdyno_proto::Record;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A test with the parameters that it shall run with.
pub struct Planned {
    pub test: &'static Test,
    pub params: Params,
}

/// Run all benchmarks of a test and record what they reported, or why they reported nothing.
///
/// `first` is the place of its first benchmark in the run.
pub fn run(planned: &Planned, first: u16, settings: &Settings, sink: &Sink) {
    for (index, metric) in (first..).zip(planned.test.metrics) {
        let benchmark = planned.test.benchmark(metric);
        sink.emit(&Record::Benchmark {
            name: benchmark.clone(),
            test: planned.test.name.into(),
            unit: settings.lane.row().unit(metric.kind.direction()).into(),
            direction: metric.kind.direction(),
            description: metric.description.into(),
        });
        if let Err(stop) = isolate(&benchmark, index, metric, &planned.params, settings, sink) {
            record_stop(&benchmark, stop, sink);
        }
    }
}

fn record_stop(benchmark: &str, stop: Stop, sink: &Sink) {
    let benchmark = benchmark.into();
    sink.emit(&match stop {
        Stop::Unsupported(reason) => Record::Unsupported { benchmark, reason },
        Stop::Broken(reason) => Record::Broken { benchmark, reason },
    });
}

/// Run one benchmark in a process group of its own and wait until nothing of it is left.
fn isolate(
    benchmark: &str,
    index: u16,
    metric: &Metric,
    params: &Params,
    settings: &Settings,
    sink: &Sink,
) -> Result<(), Stop> {
    let scratch = Scratch::new()?;
    let fate = Fate::shared();
    fate.clear();
    if let Clock::Model { .. } = settings.clock {
        // Here, so that it is done once: the benchmarks' processes inherit what was found.
        Ticks::find();
    }
    // SAFETY: the agent has one thread, so the child may go on as if nothing happened.
    let (agent, pid) = unsafe { (libc::getpid(), libc::fork()) };
    if check("fork()", pid)? == 0 {
        // A panic must not unwind into the agent's half of this function.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let measured = enter_cell(agent, settings.clock).and_then(|clock| {
                let recorder = Recorder {
                    benchmark,
                    index,
                    model_operations: metric.model_operations,
                    settings: &Settings { clock, ..*settings },
                    sink,
                    scratch: &scratch.path,
                };
                (metric.run)(&recorder, params)
            });
            if let Err(stop) = measured {
                // A peer that failed is the cause; that it has gone is what this side saw.
                record_stop(benchmark, fate.failure().unwrap_or(stop), sink);
            }
        }));
        // SAFETY: no pointers; _exit runs nothing of the agent's.
        unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 101 }) }
    }
    match processes::wait_for_group(pid) {
        Death::Exit(0) => Ok(()),
        Death::Exit(PEER_DIED) => Err(fate.end()),
        Death::Signal(libc::SIGALRM) => {
            Err(Stop::Broken(format!("an iteration had no end after {} s", too_long(settings.clock))))
        }
        death => Err(Stop::Broken(death.to_string())),
    }
}

/// Do what the benchmark's process does before it measures, and return the clock for it.
fn enter_cell(agent: libc::pid_t, clock: Clock) -> Result<Clock, Stop> {
    die_with(agent);
    still_alive(clock);
    // SAFETY: no pointers. Failure costs only tidiness.
    unsafe { libc::setpgid(0, 0) };
    // One CPU for it and its peers, as in the model lane: where the scheduler puts two of them is another experiment, and
    // would make two clusters of samples out of one. Failure costs only precision, except for a clock of one CPU.
    let cpu = cpu::stay();
    // SAFETY: `no_priority` is a sched_param. Failure costs only precision.
    unsafe {
        // Of two processes that wake each other, the scheduler lets the woken one run at once, or not, as their virtual
        // run times have it, which each instruction moves. One round trip then costs a wake-up more than the next. Those
        // of SCHED_BATCH, in the same class with the same queue, never push each other aside: they switch where one waits.
        let no_priority: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &no_priority);
    }
    match clock {
        Clock::Cycles(counter) => counter.open(cpu?).map(Clock::Cycles).map_err(Stop::Broken),
        Clock::Wall | Clock::Model { .. } => Ok(clock),
    }
}

/// A directory that is gone afterwards, whatever the benchmark left in it. Named after the agent's process, because a
/// random name would make paths hash differently in each boot.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new() -> Result<Scratch, Failure> {
        let base = std::env::var_os("TMPDIR").map_or_else(|| Path::new("/tmp").into(), PathBuf::from);
        let path = base.join(format!("kdyno-agent.{}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Scratch { path }),
            Err(error) => {
                Err(Failure::Errno { call: "mkdir(scratch directory)", errno: error.raw_os_error().unwrap_or(0) })
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed is only litter.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::counter::specimen;
    use crate::sys::fd;
    use crate::sys::peer::Peer;
    use kdyno_proto::{Kind, Lane};
    use std::collections::BTreeMap;
    use std::io::Read;

    type Run = fn(&Recorder, &Params) -> Result<(), Stop>;

    fn records_of(run: Run) -> Vec<Record> {
        records_by(Clock::Wall, run)
    }

    fn records_by(clock: Clock, run: Run) -> Vec<Record> {
        let metrics: &'static [Metric] = Box::leak(Box::new([Metric {
            suffix: "one",
            kind: Kind::Latency,
            description: "d",
            model_operations: 1,
            run,
        }]));
        let test: &'static Test =
            Box::leak(Box::new(Test { name: "toy", suite: None, description: "d", params: &[], metrics }));
        let lane = Lane::usual(false);
        let params = test.resolve(lane, &BTreeMap::new()).unwrap();
        let settings = Settings { lane, clock, iterations: 2 };
        let (read, write) = fd::pipe().unwrap();
        let sink = Sink::new(write).unwrap();
        super::run(&Planned { test, params }, 0, &settings, &sink);
        drop(sink);
        let mut text = String::new();
        std::fs::File::from(read).read_to_string(&mut text).unwrap();
        text.lines().skip(1).map(|line| Record::from_line(line).unwrap()).collect()
    }

    /// All parts of this test fork from a directory named after this process, so they take turns.
    #[test]
    fn whatever_a_benchmark_does_the_agent_lives_and_says_so() {
        let reason = |run| match records_of(run).as_slice() {
            [Record::Broken { benchmark, reason }] if benchmark == "toy.one" => reason.clone(),
            other => panic!("{other:?}"),
        };
        // SAFETY: ends only the benchmark's own process.
        assert_eq!(reason(|_, _| unsafe { libc::_exit(3) }), "exited with status 3");
        // SAFETY: as above.
        let killed = reason(|_, _| unsafe {
            libc::kill(libc::getpid(), libc::SIGTERM);
            Ok(())
        });
        assert_eq!(killed, "killed by signal 15");

        let samples = records_of(|recorder, _| recorder.measure(Ok));
        assert_eq!(samples.len(), 2);
        if specimen::may_count() {
            let counted = records_by(Clock::Cycles(specimen::closed()), |recorder, _| recorder.measure(Ok));
            assert!(matches!(counted.as_slice(), [Record::Sample { .. }, Record::Sample { .. }]), "{counted:?}");
        }
        let not_counted = reason(|recorder, _| {
            let settings = Settings { clock: Clock::Cycles(specimen::closed()), ..*recorder.settings };
            Recorder { settings: &settings, ..*recorder }.measure(Ok)
        });
        assert_eq!(not_counted, "the cycle counter cannot be read: read(counter): EBADF");
        let unsupported = records_of(|_, _| Err(Stop::Unsupported("no".into())));
        assert_eq!(unsupported, [Record::Unsupported { benchmark: "toy.one".into(), reason: "no".into() }]);

        // Peers. Here the benchmark waits for what never comes: only the alarm would end it, after a minute.
        let start = std::time::Instant::now();
        let peer_failed = reason(|_, _| {
            let _peer = Peer::spawn(|| Err(Failure::Errno { call: "send(udp)", errno: libc::ENOBUFS }))?;
            wait_for_ever()
        });
        assert_eq!(peer_failed, "the other process: send(udp): ENOBUFS");
        let peer_killed = reason(|_, _| {
            // SAFETY: ends only the peer.
            let _peer = Peer::spawn(|| unsafe {
                libc::kill(libc::getpid(), libc::SIGKILL);
                Ok(())
            })?;
            wait_for_ever()
        });
        assert_eq!(peer_killed, "the other process: killed by signal 9");
        let peer_lacks = records_of(|_, _| {
            let _peer = Peer::spawn(|| Err(Failure::Errno { call: "recv(udp)", errno: libc::ENOSYS }))?;
            wait_for_ever()
        });
        let lacking = "the other process: recv(udp): ENOSYS (not in this kernel)";
        assert_eq!(peer_lacks, [Record::Unsupported { benchmark: "toy.one".into(), reason: lacking.into() }]);
        // What failed on this side is told as before, and the last benchmark's peer is forgotten.
        let own = reason(|_, _| {
            let _peer = Peer::spawn(|| wait_for_ever().map_err(|_| unreachable!()))?;
            Err(Failure::Errno { call: "read(tcp)", errno: libc::EIO }.into())
        });
        assert_eq!(own, "read(tcp): EIO");
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    }

    fn wait_for_ever() -> Result<(), Stop> {
        loop {
            // SAFETY: no pointers.
            unsafe { libc::pause() };
        }
    }
}
