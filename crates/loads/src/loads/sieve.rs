//! The sieve of Eratosthenes over an array of bytes.

use crate::area::Area;
use crate::clock::measure;
use crate::failure::{self, Failure};
use crate::load::{Load, Program, any_values};
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{ADVISE, Kind, PROCESSES, Parameters, Setting};

pub const SIEVE: Program = Program {
    name: "sieve",
    summary: "the primes below --bytes by the sieve of Eratosthenes, a byte for each number, found --rounds times; seconds",
    settings: &[
        Setting { name: "bytes", kind: Kind::Bytes { least: 2, most: 1 << 36 }, default: Some("1M") },
        Setting { name: "rounds", kind: Kind::Number { least: 1, most: 1_000_000 }, default: Some("1") },
        PROCESSES,
        ADVISE,
    ],
    check: any_values,
    prepare,
};

struct Sieve {
    is_composite: Area<u8>,
    rounds: usize,
}

fn prepare(parameters: &Parameters) -> Result<Box<dyn Load>, Failure> {
    let mut is_composite = Area::new(parameters.number("bytes"), parameters.advice())?;
    is_composite.fill(0);
    Ok(Box::new(Sieve { is_composite, rounds: parameters.number("rounds") }))
}

/// Mark every number that has a smaller factor, except 0 and 1.
fn sieve(is_composite: &mut [u8]) {
    let mut factor = 2;
    while factor * factor < is_composite.len() {
        if is_composite[factor] == 0 {
            is_composite[factor * factor..].iter_mut().step_by(factor).for_each(|mark| *mark = 1);
        }
        factor += 1;
    }
}

/// Return the number of primes below `limit`, without finding them: Legendre's count over all quotients of limit - 1.
///
/// `small[n]` is how many numbers from 2 to n are left, and `large[n]` how many to most / n, when multiples of the primes so
/// far are struck out.
fn primes_below(limit: u64) -> u64 {
    let most = limit.saturating_sub(1) as usize;
    if most < 2 {
        return 0;
    }
    let root = most.isqrt();
    let mut small: Vec<usize> = (0..=root).map(|n| n.saturating_sub(1)).collect();
    let mut large: Vec<usize> = (0..=root).map(|n| most.checked_div(n).map_or(0, |quotient| quotient - 1)).collect();
    for prime in 2..=root {
        let smaller = small[prime - 1];
        if small[prime] == smaller {
            continue;
        }
        for n in 1..=root.min(most / (prime * prime)) {
            let product = n * prime;
            let remaining = if product <= root { large[product] } else { small[most / product] };
            large[n] -= remaining - smaller;
        }
        for n in (prime * prime..=root).rev() {
            small[n] -= small[n / prime] - smaller;
        }
    }
    large[1] as u64
}

impl Load for Sieve {
    fn reset(&mut self) {
        self.is_composite.fill(0);
    }

    fn run(&mut self) -> Result<Repetition, Failure> {
        let ((), timing) = measure(|| {
            for round in 0..self.rounds {
                if round > 0 {
                    self.is_composite.fill(0);
                }
                sieve(&mut self.is_composite);
            }
        });
        Ok(Repetition { readings: vec![Reading::seconds(&timing)], timing })
    }

    fn verify(&mut self) -> Result<Facts, Failure> {
        let limit = self.is_composite.len();
        let primes = self.is_composite[2..].iter().filter(|mark| **mark == 0).count() as u64;
        match primes_below(limit as u64) {
            known if known == primes => Ok([("primes".into(), primes.into())].into_iter().collect()),
            known => Err(failure::wrong_result(format!(
                "the sieve found {primes} primes below {limit}, but there are {known}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::test::{outcome, prepared};

    #[test]
    fn the_counts_of_primes_are_the_known_ones() {
        let known = [(2, 0), (3, 1), (4, 2), (10, 4), (100, 25), (1000, 168), (1_000_000, 78_498), (1 << 20, 82_025)];
        for (limit, primes) in known.into_iter().chain([(1 << 26, 3_957_809), (10_000_000_000, 455_052_511)]) {
            assert_eq!(primes_below(limit), primes, "{limit}");
        }
    }

    #[test]
    fn the_sieve_finds_as_many() {
        for limit in (2..200).chain([10_000]) {
            let outcome = outcome(&format!("sieve --bytes {limit}")).unwrap();
            assert_eq!(outcome["facts"]["primes"], primes_below(limit), "{limit}");
        }
        assert_eq!(outcome("sieve --repeat 2 --rounds 3").unwrap()["facts"]["primes"], 82_025);
    }

    #[test]
    fn a_sieve_that_did_not_run_is_found() {
        let failure = prepared("sieve --bytes 100").verify().unwrap_err();
        assert!(
            failure.to_string().starts_with("wrong result: the sieve found 98 primes below 100, but there are 25"),
            "{failure}"
        );
    }
}
