//! The process that looks after one program of a soak: rounds again and again, until the time is over.

use super::step::{Listener, Outcome};
use super::tallies::Tally;
use super::{Surroundings, leftovers};
use crate::sink::Sink;
use kdyno_proto::{Phase, Program, Progress, Record, Stream};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A program that fails so often before it came through once is left out.
const ATTEMPTS: u64 = 3;
/// Failures of a program that are told one by one.
pub const MOST_TOLD: u64 = 20;
/// What is told of the output of a step that failed: bytes of its end.
pub const TAIL: usize = 2000;
/// Before a program that failed is set up again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a tear-down may take when the soak is over.
const TEAR_DOWN: Duration = Duration::from_secs(60);

/// The end of what a step writes.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Listener for Tail {
    fn hear(&mut self, _: Stream, written: &[u8]) {
        self.0.extend_from_slice(written);
        let surplus = self.0.len().saturating_sub(TAIL);
        self.0.drain(..surplus);
    }
}

/// How a step ended.
#[derive(PartialEq, Eq)]
enum End {
    /// Nanoseconds that it took.
    Good(u64),
    Failed,
    /// The soak was over first.
    Interrupted,
}

pub struct Keeper<'a> {
    pub program: &'a Program,
    pub until: Instant,
    pub surroundings: &'a Surroundings,
    pub tally: &'a Tally,
    pub sink: &'a Sink,
}

impl Keeper<'_> {
    /// Return when the program is torn down and nothing of it is left; record that in the tally.
    pub fn keep(&self) {
        leftovers::adopt();
        while self.left() > Duration::ZERO {
            let interrupted = self.session() == End::Interrupted;
            self.tear_down();
            if interrupted {
                break;
            }
            if self.tally.rounds() == 0 && self.tally.failures() >= ATTEMPTS {
                return self.tally.end(Progress::LeftOut);
            }
            sleep(PAUSE.min(self.left()));
        }
        self.tally.end(Progress::Over);
    }

    /// Run a set-up, and rounds until one fails or the time is over. Never `Good`.
    fn session(&self) -> End {
        let set_up = self.optional(Phase::SetUp, &self.program.set_up);
        if !matches!(set_up, End::Good(_)) {
            return set_up;
        }
        loop {
            let end = self.round();
            if !matches!(end, End::Good(_)) {
                return end;
            }
        }
    }

    /// Run the command, and the report on it. The time of a round is the command's.
    fn round(&self) -> End {
        let command = self.step(Phase::Command, &self.program.command);
        let End::Good(elapsed) = command else { return command };
        let report = self.optional(Phase::Report, &self.program.report);
        if matches!(report, End::Good(_)) {
            self.tally.add_round(elapsed);
        }
        report
    }

    fn optional(&self, phase: Phase, words: &Option<Vec<String>>) -> End {
        words.as_ref().map_or(End::Good(0), |words| self.step(phase, words))
    }

    fn step(&self, phase: Phase, words: &[String]) -> End {
        if self.left() == Duration::ZERO {
            return End::Interrupted;
        }
        let mut tail = Tail::default();
        let Outcome { status, elapsed, .. } =
            self.surroundings.carry_out(self.program, words, Some(self.until), &mut tail);
        if status == 0 {
            return End::Good(elapsed);
        }
        if self.left() == Duration::ZERO {
            return End::Interrupted;
        }
        self.fail(phase, status, elapsed, tail);
        End::Failed
    }

    fn fail(&self, phase: Phase, status: u8, elapsed: u64, tail: Tail) {
        let before = self.tally.failures();
        if before < MOST_TOLD {
            let round = self.tally.rounds() + before;
            self.sink.emit(&Record::Failed {
                program: self.program.name.clone(),
                phase,
                round,
                status,
                elapsed,
                tail: tail.0,
            });
        }
        self.tally.add_failure();
    }

    /// Take the set-up down. How that ends is not judged: what it would take down may have failed, or been interrupted.
    fn tear_down(&self) {
        if let Some(words) = &self.program.tear_down {
            let until = Some(self.until.max(Instant::now()) + TEAR_DOWN);
            self.surroundings.carry_out(self.program, words, until, &mut Tail::default());
        }
        leftovers::end();
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_step_writes_the_end_is_kept() {
        let mut tail = Tail::default();
        tail.hear(Stream::Stdout, &[b'a'; TAIL]);
        tail.hear(Stream::Stderr, b"the end");
        assert_eq!(tail.0.len(), TAIL);
        assert!(tail.0.starts_with(b"aaa") && tail.0.ends_with(b"athe end"));
    }
}
