//! Runs a load: its data is made, its computation repeated, its result verified.

use crate::clock::{Faults, time_work};
use crate::failure::{self, Failure};
use crate::large_pages::{LargePages, SizeCounts};
use crate::load::{Load, Program};
use crate::loads::LOADS;
use crate::outcome::{Outcome, Repetition, metrics};
use crate::parameters::{Parameters, REPEAT};
use crate::processes::{self, Share};

pub fn run<'a>(program: &'static Program, parameters: &'a Parameters) -> Result<Outcome<'a>, Failure> {
    let (readings, shares) = match parameters.processes() {
        1 => {
            let share = run_alone(program, parameters, |_| Ok(()))?;
            (share.repetitions.iter().map(|repetition| repetition.readings.clone()).collect(), vec![share])
        }
        processes => {
            let shares = processes::run_together(processes, parameters.number(REPEAT.name), |in_step| {
                run_alone(program, parameters, in_step)
            })?;
            (processes::readings(&shares), shares)
        }
    };
    if shares.iter().any(|share| share.facts != shares[0].facts) {
        return Err(failure::wrong_result("the results of the processes differ"));
    }
    let repetitions = || shares.iter().flat_map(|share| &share.repetitions);
    Ok(Outcome {
        name: program.name,
        parameters,
        init_seconds: shares.iter().map(|share| share.init_seconds).fold(0.0, f64::max),
        metrics: metrics(&readings),
        faults: repetitions().map(|repetition| repetition.timing.faults).sum::<Faults>(),
        memory: shares.iter().map(|share| share.memory).reduce(|one, other| Some(one? + other?)).flatten(),
        // The kernel counts them for the whole system: copies that run at once would count each other's.
        large_pages: if shares.len() == 1 { large_pages(&shares[0]) } else { None },
        facts: shares.into_iter().next().expect("a load has one process at least").facts,
        verified: true,
    })
}

/// Return the large pages by size, of initialisation and of the timed parts.
fn large_pages(share: &Share) -> Option<Vec<SizeCounts>> {
    let parts = share.repetitions.iter().map(|repetition| repetition.timing.large_pages);
    let timed = parts.reduce(|one, other| Some(one? + other?))??;
    Some(LargePages::by_size(share.init_large_pages?, timed))
}

/// Tell the emulated PMU whose region the next measured part is: a load's number is its place in the list of loads.
/// Copies in several processes are not regions: each would end the others' region.
fn announce(program: &Program, parameters: &Parameters, number: usize) {
    let place = LOADS.iter().position(|load| load.name == program.name).unwrap_or_default();
    let iteration = if parameters.processes() == 1 { number as u16 } else { kdyno_marker::UNSEEN };
    kdyno_marker::announce(place as u16, iteration);
}

/// Run all of a load in this process; `in_step` is called before each repetition.
fn run_alone(
    program: &Program,
    parameters: &Parameters,
    mut in_step: impl FnMut(usize) -> Result<(), Failure>,
) -> Result<Share, Failure> {
    let first = LargePages::read();
    let (load, initialisation) = time_work(|| (program.prepare)(parameters));
    let init_large_pages = LargePages::read().zip(first).map(|(last, first)| last.subtract(first));
    let mut load: Box<dyn Load> = load?;
    let mut repetitions = Vec::new();
    for number in 0..parameters.number(REPEAT.name) {
        if number > 0 {
            load.reset();
        }
        in_step(number)?;
        announce(program, parameters, number);
        repetitions.push(require_time(load.run()?)?);
    }
    let memory = load.memory();
    let init_seconds = initialisation.seconds();
    Ok(Share { init_seconds, init_large_pages, repetitions, memory, facts: load.verify()? })
}

/// Return the repetition, if the clock moved while it ran: otherwise there is no time, and no rate.
fn require_time(repetition: Repetition) -> Result<Repetition, Failure> {
    let has_time = repetition.timing.end > repetition.timing.start;
    match has_time && repetition.readings.iter().all(|reading| reading.value.is_finite()) {
        true => Ok(repetition),
        false => Err(Failure::of_surroundings(
            "the clock did not move while the load ran",
            "ask for more with --size, --bytes or --iterations: this kernel's clock has long steps",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timing;
    use crate::outcome::Reading;

    #[test]
    fn without_time_there_is_no_rate() {
        let repetition = |end| {
            let timing = Timing { start: 5, end, ..Timing::default() };
            require_time(Repetition { readings: vec![Reading::mflops(2.0, &timing)], timing })
        };
        assert!(repetition(6).is_ok());
        let failure = repetition(5).unwrap_err();
        assert_eq!(failure.exit_code, 3);
        assert!(failure.to_string().contains("ask for more"), "{failure}");
    }
}
