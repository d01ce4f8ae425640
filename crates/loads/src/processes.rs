//! Copies of a load in several processes at once, which begin each repetition together.

use crate::failure::{self, Failure};
use crate::fork;
use crate::large_pages::LargePages;
use crate::memory::Memory;
use crate::outcome::{Facts, Reading, Repetition};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};

/// What one process did.
#[derive(Debug, Serialize, Deserialize)]
pub struct Share {
    pub init_seconds: f64,
    pub init_large_pages: Option<LargePages>,
    pub repetitions: Vec<Repetition>,
    pub memory: Option<Memory>,
    pub facts: Facts,
}

/// What a copy says, each on a line.
#[derive(Serialize, Deserialize)]
enum Word {
    /// It waits for a byte to begin the next repetition.
    Ready,
    Done(Box<Share>),
    Failed(Failure),
}

/// Pipes, since a small kernel may have no sockets.
struct Copy {
    process: Pid,
    words: BufReader<PipeReader>,
    starts: PipeWriter,
}

type InStep<'a> = &'a mut dyn FnMut(usize) -> Result<(), Failure>;

/// Return the shares of `count` processes, each of which does `work`; that calls what it is given before each
/// repetition.
pub fn run_together(
    count: usize,
    repetitions: usize,
    work: impl Fn(InStep) -> Result<Share, Failure>,
) -> Result<Vec<Share>, Failure> {
    let mut copies: Vec<Copy> = Vec::new();
    for _ in 0..count {
        let pipe = || pipe().map_err(|error| failure::io_failure("make a pipe", &error));
        let ((words, say), (hear, starts)) = (pipe()?, pipe()?);
        match fork::split()? {
            Some(process) => copies.push(Copy { process, words: BufReader::new(words), starts }),
            None => {
                // Only the parent keeps its ends, so that every copy hears when it is gone.
                drop((copies, words, starts));
                be_copy(say, hear, work)
            }
        }
    }
    let shares = lead(&mut copies, repetitions);
    let processes: Vec<Pid> = copies.iter().map(|copy| copy.process).collect();
    drop(copies);
    let ends: Vec<_> = processes.into_iter().map(fork::wait).collect();
    match shares {
        // A process that was killed says more than the silence that follows.
        Err(silence) if silence == silent() => Err(ends.into_iter().find_map(Result::err).unwrap_or(silence)),
        shares => shares,
    }
}

fn be_copy(mut words: PipeWriter, mut starts: PipeReader, work: impl Fn(InStep) -> Result<Share, Failure>) -> ! {
    let mut in_step = |_| {
        say(&mut words, &Word::Ready)?;
        starts.read_exact(&mut [0]).map_err(|error| failure::io_failure("hear of the other processes", &error))
    };
    let word = match work(&mut in_step) {
        Ok(share) => Word::Done(Box::new(share)),
        Err(failure) => Word::Failed(failure),
    };
    let result = say(&mut words, &word);
    std::process::exit(i32::from(result.is_err()))
}

fn say(words: &mut PipeWriter, word: &Word) -> Result<(), Failure> {
    let line = serde_json::to_string(word).expect("names and numbers are JSON") + "\n";
    words.write_all(line.as_bytes()).map_err(|error| failure::io_failure("speak to the other processes", &error))
}

fn lead(copies: &mut [Copy], repetitions: usize) -> Result<Vec<Share>, Failure> {
    for _ in 0..repetitions {
        for copy in copies.iter_mut() {
            match hear(copy)? {
                Word::Ready => {}
                Word::Failed(failure) => return Err(failure),
                Word::Done(_) => return Err(silent()),
            }
        }
        for copy in copies.iter_mut() {
            copy.starts.write_all(&[1]).map_err(|_| silent())?;
        }
    }
    let share = |copy| match hear(copy)? {
        Word::Done(share) => Ok(*share),
        Word::Failed(failure) => Err(failure),
        Word::Ready => Err(silent()),
    };
    copies.iter_mut().map(share).collect()
}

fn hear(copy: &mut Copy) -> Result<Word, Failure> {
    let mut line = String::new();
    copy.words.read_line(&mut line).map_err(|_| silent())?;
    serde_json::from_str(&line).map_err(|_| silent())
}

fn silent() -> Failure {
    Failure::of_surroundings("a process ended before its work was done", "")
}

/// Return for each repetition the seconds from the first begin to the last end, and every process's own readings,
/// numbered.
pub fn readings(shares: &[Share]) -> Vec<Vec<Reading>> {
    let repetitions = shares.iter().map(|share| share.repetitions.len()).min().unwrap_or(0);
    (0..repetitions)
        .map(|number| {
            let of_all: Vec<&Repetition> = shares.iter().map(|share| &share.repetitions[number]).collect();
            let start = of_all.iter().map(|repetition| repetition.timing.start).min().unwrap_or(0);
            let end = of_all.iter().map(|repetition| repetition.timing.end).max().unwrap_or(0);
            let mut readings = vec![Reading::lower("seconds", (end - start) as f64 / 1e9, "s")];
            for (process, repetition) in (1..).zip(of_all) {
                let numbered = |reading: &Reading| Reading {
                    name: format!("{}.process{process}", reading.name),
                    ..reading.clone()
                };
                readings.extend(repetition.readings.iter().map(numbered));
            }
            readings
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timing;

    #[test]
    fn the_time_of_all_is_from_the_first_begin_to_the_last_end() {
        let share = |start, end| {
            let timing = Timing { start, end, ..Timing::default() };
            let repetitions = vec![Repetition { readings: vec![Reading::seconds(&timing)], timing }];
            Share { init_seconds: 0.0, init_large_pages: None, repetitions, memory: None, facts: Facts::new() }
        };
        let readings = readings(&[share(1_000_000_000, 3_000_000_000), share(2_000_000_000, 6_000_000_000)]);
        let values: Vec<_> = readings[0].iter().map(|reading| (reading.name.as_str(), reading.value)).collect();
        assert_eq!(values, [("seconds", 5.0), ("seconds.process1", 2.0), ("seconds.process2", 4.0)]);
    }
}
