//! The product of two dense matrices by the plain triple loop: the columns of the second are walked at a stride of a row.

use crate::area::Area;
use crate::clock::measure;
use crate::failure::{self, Failure};
use crate::load::{Load, Program, any_values};
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{ADVISE, Kind, Parameters, Setting, THREADS};
use crate::scramble::whole;
use crate::threads;

pub const MATMUL: Program = Program {
    name: "matmul",
    summary: "product of two matrices of f64 of --size x --size, plain triple loop; MFLOPS",
    settings: &[
        Setting { name: "size", kind: Kind::Number { least: 1, most: 32_768 }, default: Some("1024") },
        THREADS,
        ADVISE,
    ],
    check: any_values,
    prepare,
};

/// Elements are whole and at most this: sums of 32768 products of two of them are exact.
const MOST: u64 = 8;

struct Matmul {
    size: usize,
    threads: usize,
    a: Area<f64>,
    b: Area<f64>,
    c: Area<f64>,
}

fn prepare(parameters: &Parameters) -> Result<Box<dyn Load>, Failure> {
    let (size, advice) = (parameters.number("size"), parameters.advice());
    let matrix = || Area::new(size * size, advice);
    let (mut a, mut b, mut c) = (matrix()?, matrix()?, matrix()?);
    a.iter_mut().zip(0..).for_each(|(element, index)| *element = whole(index, MOST));
    b.iter_mut().zip(0..).for_each(|(element, index)| *element = whole(!index, MOST));
    c.fill(f64::NAN);
    Ok(Box::new(Matmul { size, threads: parameters.number("threads"), a, b, c }))
}

/// Multiply; each thread has rows of `c` of its own.
fn multiply(size: usize, threads: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    let rows = size.div_ceil(threads);
    let parts = a.chunks(rows * size).zip(c.chunks_mut(rows * size)).collect();
    threads::in_parallel(parts, |(a, c): (&[f64], &mut [f64])| {
        for (a_row, c_row) in a.chunks_exact(size).zip(c.chunks_exact_mut(size)) {
            for (column, element) in c_row.iter_mut().enumerate() {
                let b_column = b[column..].iter().step_by(size);
                *element = a_row.iter().zip(b_column).map(|(x, y)| x * y).sum();
            }
        }
    });
}

/// Return whether Freivalds' check holds: with a vector of whole numbers, C v must be A (B v), exactly.
fn is_product(size: usize, a: &[f64], b: &[f64], c: &[f64]) -> bool {
    let times = |matrix: &[f64], vector: &[f64]| -> Vec<f64> {
        matrix.chunks_exact(size).map(|row| row.iter().zip(vector).map(|(x, y)| x * y).sum()).collect()
    };
    let vector = |number: u64| -> Vec<f64> { (0..size as u64).map(|index| whole(index << 8 | number, 1000)).collect() };
    [vec![1.0; size], vector(1), vector(2), vector(3)].iter().all(|v| times(c, v) == times(a, &times(b, v)))
}

impl Load for Matmul {
    fn reset(&mut self) {
        self.c.fill(f64::NAN);
    }

    fn run(&mut self) -> Result<Repetition, Failure> {
        let Matmul { size, threads, a, b, c } = self;
        let ((), timing) = measure(|| multiply(*size, *threads, a, b, c));
        let operations = 2.0 * (*size as f64).powi(3);
        Ok(Repetition { readings: vec![Reading::mflops(operations, &timing), Reading::seconds(&timing)], timing })
    }

    fn verify(&mut self) -> Result<Facts, Failure> {
        match is_product(self.size, &self.a, &self.b, &self.c) {
            true => Ok(Facts::new()),
            false => {
                Err(failure::wrong_result("the product times a vector differs from the matrices times that vector"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::test::outcome;

    #[test]
    fn a_product_is_that_of_the_definition() {
        let (a, b, mut c) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [0.0; 4]);
        multiply(2, 1, &a, &b, &mut c);
        assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
    }

    #[test]
    fn any_number_of_threads_gives_the_product() {
        for threads in [1, 2, 3, 40] {
            let outcome = outcome(&format!("matmul --size 33 --threads {threads}")).unwrap();
            assert_eq!((&outcome["verified"], outcome["metrics"][0]["unit"].as_str()), (&true.into(), Some("MFLOPS")));
        }
    }

    #[test]
    fn one_wrong_element_is_found() {
        let size = 20;
        let matrix = |seed: u64| -> Vec<f64> { (0..400).map(|index| whole(index + seed, MOST)).collect() };
        let (a, b, mut c) = (matrix(0), matrix(1000), vec![0.0; 400]);
        multiply(size, 1, &a, &b, &mut c);
        assert!(is_product(size, &a, &b, &c));
        for at in 0..400 {
            c[at] += 1.0;
            assert!(!is_product(size, &a, &b, &c), "{at}");
            c[at] -= 1.0;
        }
    }
}
