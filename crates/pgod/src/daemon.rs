//! Snapshots on a timer and on signals. What fails is said once, and tried again the next time.

use crate::arguments::Settings;
use crate::failure::Failure;
use crate::gcov::Gcov;
use crate::kernel::{self, Kernel};
use crate::prune;
use crate::say;
use crate::signals::{Event, Signals};
use crate::snapshot;
use crate::store::{Run, Writer};
use std::time::Instant;

struct Daemon<'a> {
    settings: &'a Settings,
    gcov: Gcov,
    writer: Writer,
    kernel: Kernel,
    boot: String,
    sequence: u64,
    /// What was said last, as long as it goes on.
    trouble: Option<String>,
}

pub fn run(settings: &Settings) -> Result<(), Failure> {
    // From here on a signal waits until it is asked for.
    let signals = Signals::block()?;
    let mut daemon = Daemon::start(settings)?;
    let mut due = Instant::now();
    loop {
        let event = signals.wait_until(due);
        let result = match event {
            Event::NewRun => daemon.new_run(),
            _ => daemon.snapshot(),
        };
        if event == Event::End {
            return result;
        }
        daemon.report(result);
        // What could not be done in time isn't made up for.
        while due <= Instant::now() {
            due += settings.interval;
        }
    }
}

impl Daemon<'_> {
    fn start(settings: &Settings) -> Result<Daemon<'_>, Failure> {
        let gcov = Gcov::find(settings.gcov.as_deref())?;
        let writer = Writer::open(&settings.directory)?;
        let (kernel, boot) = (Kernel::running()?, kernel::boot_id()?);
        let snapshots = writer.store.snapshots()?;
        let sequence = snapshots
            .iter()
            .filter(|snapshot| snapshot.boot == boot)
            .map(|snapshot| snapshot.sequence)
            .max()
            .unwrap_or(0);
        let daemon = Daemon { settings, gcov, writer, kernel, boot, sequence, trouble: None };
        let run = daemon.writer.run(&daemon.boot)?;
        if run.reset {
            daemon.reset(run.number)?;
        }
        let Settings { directory, interval, .. } = settings;
        let verb = if sequence == 0 { "begins" } else { "goes on" };
        let Run { number, .. } = run;
        say(&format!(
            "boot {}, run {number} {verb}: every {} s into {}",
            daemon.boot,
            interval.as_secs(),
            directory.display()
        ));
        Ok(daemon)
    }

    fn snapshot(&mut self) -> Result<(), Failure> {
        let Run { number: run, reset } = self.writer.run(&self.boot)?;
        if reset {
            self.reset(run)?;
        }
        let content = snapshot::take(&self.gcov, &self.kernel, &self.boot, run, self.sequence + 1)?;
        self.writer.add(&self.boot, run, self.sequence + 1, &content)?;
        self.sequence += 1;
        self.prune()
    }

    /// Take a snapshot of what was counted so far, and begin another run.
    fn new_run(&mut self) -> Result<(), Failure> {
        self.snapshot()?;
        let previous = self.writer.run(&self.boot)?;
        let number = previous.number + 1;
        self.writer.set_run(&self.boot, Run { number, reset: true })?;
        if let Err(failure) = self.gcov.reset() {
            // They go on from where they were, and so does the run: else all would be counted twice.
            self.writer.set_run(&self.boot, previous)?;
            return Err(failure);
        }
        self.writer.set_run(&self.boot, Run { number, reset: false })?;
        say(&format!("all counters are reset: run {number} begins"));
        Ok(())
    }

    /// Reset the counters for a run that is announced. Whoever is killed before this is on record does it again, and
    /// loses what was counted since.
    fn reset(&self, number: u32) -> Result<(), Failure> {
        self.gcov.reset()?;
        self.writer.set_run(&self.boot, Run { number, reset: false })
    }

    fn prune(&self) -> Result<(), Failure> {
        let snapshots = self.writer.store.snapshots()?;
        let choice = prune::choose(&snapshots, self.settings.keep, self.settings.max_bytes);
        for snapshot in &choice.runs {
            say(&format!("{} is removed because of --max-bytes: its run has no other snapshot", snapshot.name()));
        }
        choice.superseded.iter().chain(&choice.runs).try_for_each(|snapshot| self.writer.remove(snapshot, &self.boot))
    }

    /// Report what went wrong, once, and when it is over.
    fn report(&mut self, result: Result<(), Failure>) {
        match (result, self.trouble.take()) {
            (Ok(()), None) => {}
            (Ok(()), Some(_)) => say("snapshots are taken again"),
            (Err(failure), previous) => {
                let message = failure.to_string();
                if previous.as_ref() != Some(&message) {
                    say(&format!(
                        "{message}; what there is stays, the next try is in {} s",
                        self.settings.interval.as_secs()
                    ));
                }
                self.trouble = Some(message);
            }
        }
    }
}
