//! A matrix is transposed into another: read by rows, written by columns.

use crate::area::Area;
use crate::clock::measure;
use crate::failure::{self, Failure};
use crate::load::{Load, Program, any_values};
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{ADVISE, Kind, Parameters, Setting, THREADS};
use crate::threads;

pub const TRANSPOSE: Program = Program {
    name: "transpose",
    summary: "a matrix of f64 of --size x --size transposed into another; MB/s, read and written",
    settings: &[
        Setting { name: "size", kind: Kind::Number { least: 1, most: 65_536 }, default: Some("4096") },
        THREADS,
        ADVISE,
    ],
    check: any_values,
    prepare,
};

struct Transpose {
    size: usize,
    threads: usize,
    source: Area<f64>,
    target: Area<f64>,
}

fn prepare(parameters: &Parameters) -> Result<Box<dyn Load>, Failure> {
    let (size, advice) = (parameters.number("size"), parameters.advice());
    let (mut source, mut target) = (Area::new(size * size, advice)?, Area::new(size * size, advice)?);
    // An element is its own place, which f64 holds exactly.
    source.iter_mut().enumerate().for_each(|(place, element)| *element = place as f64);
    target.fill(f64::NAN);
    Ok(Box::new(Transpose { size, threads: parameters.number("threads"), source, target }))
}

/// Transpose; each thread has rows of the target, which are columns of the source, of its own.
fn transpose(size: usize, threads: usize, source: &[f64], target: &mut [f64]) {
    let rows = size.div_ceil(threads);
    threads::in_parallel(
        target.chunks_mut(rows * size).enumerate().collect(),
        |(part, target): (usize, &mut [f64])| {
            let first = part * rows;
            let columns = first..first + target.len() / size;
            for (row, elements) in source.chunks_exact(size).enumerate() {
                let into_column = target[row..].iter_mut().step_by(size);
                elements[columns.clone()].iter().zip(into_column).for_each(|(element, place)| *place = *element);
            }
        },
    );
}

/// Return the first place whose element is not that of the transposed place.
fn first_wrong(size: usize, target: &[f64]) -> Option<(usize, usize)> {
    let positions = (0..size).flat_map(|row| (0..size).map(move |column| (row, column)));
    positions
        .zip(target)
        .find(|((row, column), element)| **element != (column * size + row) as f64)
        .map(|(place, _)| place)
}

impl Load for Transpose {
    fn reset(&mut self) {
        self.target.fill(f64::NAN);
    }

    fn run(&mut self) -> Result<Repetition, Failure> {
        let Transpose { size, threads, source, target } = self;
        let ((), timing) = measure(|| transpose(*size, *threads, source, target));
        let bytes = 2.0 * size_of_val(&source[..]) as f64;
        let rate = Reading::higher("rate", bytes / timing.seconds() / 1e6, "MB/s");
        Ok(Repetition { readings: vec![rate, Reading::seconds(&timing)], timing })
    }

    fn verify(&mut self) -> Result<Facts, Failure> {
        match first_wrong(self.size, &self.target) {
            None => Ok(Facts::new()),
            Some((row, column)) => {
                Err(failure::wrong_result(format!("row {row}, column {column} holds the element of another place")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::test::outcome;

    #[test]
    fn rows_become_columns() {
        let mut target = [0.0; 4];
        transpose(2, 1, &[0.0, 1.0, 2.0, 3.0], &mut target);
        assert_eq!(target, [0.0, 2.0, 1.0, 3.0]);
        assert_eq!(first_wrong(2, &target), None);
        assert_eq!(first_wrong(2, &[0.0, 2.0, 1.0, 2.0]), Some((1, 1)));
    }

    #[test]
    fn any_number_of_threads_transposes_all() {
        for threads in [1, 2, 3, 70] {
            assert_eq!(outcome(&format!("transpose --size 65 --threads {threads}")).unwrap()["verified"], true);
        }
    }
}
