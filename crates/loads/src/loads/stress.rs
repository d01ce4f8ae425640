//! Memory under stress: pages are written, discarded, protected, moved, locked, swapped and copied in a random order that a
//! seed decides, and every word of them is verified. For kernels that are to be trusted before they are timed.

use crate::clock::time_work;
use crate::failure::Failure;
use crate::fork;
use crate::load::{Load, Program, any_values};
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{Kind, Parameters, Setting};
use crate::patchwork::{Patchwork, Policy};
use crate::scramble::scramble;
use nix::unistd::{SysconfVar, sysconf};
use std::ops::Range;

pub const MEMORY_STRESS: Program = Program {
    name: "memory-stress",
    summary: "does --steps things to random parts of --bytes of memory and verifies every word; seconds",
    settings: &[
        Setting { name: "bytes", kind: Kind::Bytes { least: 1 << 20, most: 1 << 40 }, default: Some("64M") },
        Setting { name: "steps", kind: Kind::Number { least: 1, most: 1_000_000_000 }, default: Some("1000") },
        Setting { name: "seed", kind: Kind::Number { least: 0, most: 1 << 31 }, default: Some("1") },
    ],
    check: any_values,
    prepare,
};

/// Steps after which everything is verified.
const ROUND: usize = 50;
/// The longest range of one step, in pages: two page tables of x86.
const LONGEST: u32 = 10;
const THREADS: usize = 3;
const STACK: usize = 512 << 10;

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Write,
    WriteBackwards,
    WriteScattered,
    WriteInThreads,
    Read,
    Discard,
    PageOut,
    Protect,
    Lock,
    AdviseSize,
    Place,
    Unmap,
    Map,
    Relocate,
    Serve,
    Fork,
    Stack,
}

/// With the name of each in the facts. Those that are here twice are done twice as often.
const STEPS: &[(Step, &str)] = &[
    (Step::Write, "writes"),
    (Step::Write, "writes"),
    (Step::WriteBackwards, "writes_backwards"),
    (Step::WriteScattered, "writes_scattered"),
    (Step::WriteInThreads, "writes_in_threads"),
    (Step::Read, "reads"),
    (Step::Discard, "discards"),
    (Step::Discard, "discards"),
    (Step::PageOut, "page_outs"),
    (Step::Protect, "protections"),
    (Step::Lock, "locks"),
    (Step::AdviseSize, "advices"),
    (Step::Place, "policies"),
    (Step::Unmap, "unmappings"),
    (Step::Map, "mappings"),
    (Step::Map, "mappings"),
    (Step::Relocate, "moves"),
    (Step::Serve, "userfaults"),
    (Step::Fork, "forks"),
    (Step::Stack, "stacks"),
];

struct Stress {
    patchwork: Patchwork,
    steps: usize,
    /// The next random number's index.
    index: u64,
    /// By name: how often a step was done, not counting what the kernel or a hole refused.
    facts: Facts,
}

fn prepare(parameters: &Parameters) -> Result<Box<dyn Load>, Failure> {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().map_or(4096, |bytes| bytes as usize);
    Ok(Box::new(Stress {
        patchwork: Patchwork::new(parameters.number("bytes") / page, page)?,
        steps: parameters.number("steps"),
        index: (parameters.number("seed") as u64) << 32,
        facts: STEPS.iter().map(|(_, name)| ((*name).into(), 0.into())).collect(),
    }))
}

/// Return what is written into a page; never 0.
fn mark(step: u64, number: usize) -> u64 {
    scramble(step << 24 | number as u64) | 1
}

impl Stress {
    fn random(&mut self, limit: usize) -> usize {
        self.index += 1;
        (scramble(self.index) % limit as u64) as usize
    }

    /// Return a range from one page to 2^LONGEST, short ones as often as long ones; half of them aligned to their own
    /// size.
    fn range(&mut self) -> Range<usize> {
        let pages = self.patchwork.pages();
        let order = self.random(LONGEST as usize + 1);
        let longest = (1 << order).min(pages);
        let start = match self.random(2) {
            0 => self.random(pages) >> order << order,
            _ => self.random(pages),
        };
        start..(start + longest).min(pages)
    }

    fn step(&mut self) -> Result<(), Failure> {
        let (step, name) = STEPS[self.random(STEPS.len())];
        let (range, index) = (self.range(), self.index);
        let mark = |number| mark(index, number);
        let is_done = match step {
            Step::Write | Step::WriteBackwards => {
                self.patchwork.write(range.clone(), step == Step::WriteBackwards, mark);
                true
            }
            Step::WriteScattered => {
                for _ in 0..range.len().div_ceil(4) {
                    let number = range.start + self.random(range.len());
                    self.patchwork.write(number..number + 1, false, mark);
                }
                true
            }
            Step::WriteInThreads => {
                self.patchwork.write_in_threads(range.clone(), THREADS, mark);
                true
            }
            Step::Read => true,
            Step::Discard => self.patchwork.discard(range.clone())?,
            Step::PageOut => self.patchwork.page_out(range.clone())?,
            Step::Protect => self.patchwork.protect(range.clone())?,
            Step::Lock => self.patchwork.lock(range.clone())?,
            Step::AdviseSize => {
                let may_be_huge = self.random(2) == 0;
                self.patchwork.advise_size(range.clone(), may_be_huge)?
            }
            Step::Place => {
                let policy = [Policy::Default, Policy::Interleaved, Policy::SecondNode][self.random(3)];
                self.patchwork.place(range.clone(), policy)?
            }
            Step::Unmap => self.patchwork.unmap(range.clone()).map(|()| true)?,
            Step::Map => self.patchwork.map(range.clone()).map(|()| true)?,
            Step::Relocate => {
                let target = self.random(self.patchwork.pages());
                self.patchwork.relocate(range.clone(), target)?
            }
            Step::Serve => self.patchwork.serve(range.clone(), mark)?,
            Step::Fork => self.patchwork.fork(range.clone(), mark).map(|()| true)?,
            Step::Stack => grow_stack(index).map(|()| true)?,
        };
        if let (true, Some(count)) = (is_done, self.facts.get_mut(name)) {
            *count = (count.as_u64().unwrap_or(0) + 1).into();
        }
        self.patchwork.verify(range)
    }
}

/// Let the stack of a child grow by STACK, and read it back.
fn grow_stack(seed: u64) -> Result<(), Failure> {
    match fork::split()? {
        Some(child) => fork::wait(child),
        None => std::process::exit(i32::from(!is_deep_stack_right(seed, STACK / size_of::<Frame>()))),
    }
}

type Frame = [u64; 500];

/// Fill one frame and the others below it, and return whether all hold then what they should.
fn is_deep_stack_right(seed: u64, frames: usize) -> bool {
    let mark = mark(seed, frames);
    let frame: Frame = std::hint::black_box([mark; 500]);
    let is_right_below = frames == 0 || is_deep_stack_right(seed, frames - 1);
    is_right_below && std::hint::black_box(&frame).iter().all(|word| *word == mark)
}

impl Load for Stress {
    fn run(&mut self) -> Result<Repetition, Failure> {
        let (result, timing) = time_work(|| {
            for number in 1..=self.steps {
                self.step()?;
                if number % ROUND == 0 || number == self.steps {
                    self.patchwork.verify(self.patchwork.all_pages())?;
                }
            }
            Ok(())
        });
        result?;
        Ok(Repetition { readings: vec![Reading::seconds(&timing)], timing })
    }

    fn verify(&mut self) -> Result<Facts, Failure> {
        self.patchwork.verify(self.patchwork.all_pages())?;
        Ok(self.facts.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::outcome;
    use super::*;

    #[test]
    fn every_step_is_done_and_a_seed_decides_them() {
        let facts = |line: &str| outcome(line).unwrap()["facts"].clone();
        let first = facts("memory-stress --bytes 8M --steps 300");
        for (step, name) in STEPS {
            let may_be_refused =
                matches!(step, Step::Lock | Step::PageOut | Step::AdviseSize | Step::Place | Step::Serve);
            assert!(may_be_refused || first[name].as_u64().unwrap() > 0, "{name}: {first}");
        }
        assert_eq!(first["writes"], facts("memory-stress --bytes 8M --steps 300")["writes"]);
        assert_ne!(first, facts("memory-stress --bytes 8M --steps 300 --seed 2"));
    }

    #[test]
    fn ranges_lie_in_the_memory_and_are_never_empty() {
        let mut stress =
            Stress { patchwork: Patchwork::new(300, 4096).unwrap(), steps: 0, index: 0, facts: Facts::new() };
        for _ in 0..10_000 {
            let range = stress.range();
            assert!(range.start < range.end && range.end <= 300, "{range:?}");
        }
    }
}
