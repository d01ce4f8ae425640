//! The fast Fourier transform in one dimension.

use super::fourier::{self, Complex, by_definition, distance, frequencies, invert, roots, tolerance};
use crate::area::Area;
use crate::clock::measure;
use crate::failure::{self, Failure};
use crate::load::{Load, Program, any_values};
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{ADVISE, Kind, Parameters, Setting};
use crate::scramble::fraction;

pub const FFT: Program = Program {
    name: "fft",
    summary: "Fourier transform of --size complex points of f64, radix 2, in place; seconds",
    settings: &[
        Setting { name: "size", kind: Kind::PowerOfTwo { least: 2, most: 1 << 30 }, default: Some("1048576") },
        ADVISE,
    ],
    check: any_values,
    prepare: |parameters| prepare(parameters, (1, parameters.number("size"))),
};

/// Rows and columns; a single row for one dimension.
pub type Shape = (usize, usize);

struct Fft {
    shape: Shape,
    values: Area<Complex>,
    /// The roots of a row, and of a column.
    roots: (Area<Complex>, Area<Complex>),
}

pub fn prepare(parameters: &Parameters, shape: Shape) -> Result<Box<dyn Load>, Failure> {
    let (rows, columns) = shape;
    let advice = parameters.advice();
    let roots = (roots(columns, advice)?, roots(rows, advice)?);
    let mut fft = Fft { shape, values: Area::new(rows * columns, advice)?, roots };
    fft.reset();
    Ok(Box::new(fft))
}

fn original(index: u64) -> Complex {
    [fraction(2 * index), fraction(2 * index + 1)]
}

/// Transform all rows, then all columns, each in its place.
fn transform((rows, columns): Shape, values: &mut [Complex], of_row: &[Complex], of_column: &[Complex]) {
    for row in 0..rows {
        fourier::transform(values, row * columns, 1, columns, of_row);
    }
    if rows > 1 {
        for column in 0..columns {
            fourier::transform(values, column, columns, rows, of_column);
        }
    }
}

impl Load for Fft {
    fn reset(&mut self) {
        self.values.iter_mut().zip(0..).for_each(|(value, index)| *value = original(index));
    }

    fn run(&mut self) -> Result<Repetition, Failure> {
        let Fft { shape, values, roots } = self;
        let ((), timing) = measure(|| transform(*shape, values, &roots.0, &roots.1));
        Ok(Repetition { readings: vec![Reading::seconds(&timing)], timing })
    }

    fn verify(&mut self) -> Result<Facts, Failure> {
        let Fft { shape, values, roots } = self;
        let (rows, columns) = *shape;
        let tolerated = tolerance(values.len());
        for (row, column) in frequencies(rows).into_iter().rev().zip(frequencies(columns)) {
            let error = distance(values[row * columns + column], by_definition(*shape, (row, column), original));
            if error.is_nan() || error > tolerated {
                return Err(failure::wrong_result(format!("frequency {row}, {column} is off by {error:e}")));
            }
        }
        invert(values, |values| transform(*shape, values, &roots.0, &roots.1));
        let errors = values.iter().zip(0..).map(|(value, index)| distance(*value, original(index)));
        match errors.fold(0.0, |worst, error| if error > worst || error.is_nan() { error } else { worst }) {
            worst if worst <= tolerated => Ok(Facts::new()),
            worst => Err(failure::wrong_result(format!("the inverse is off by {worst:e}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::test::{outcome, prepared};

    #[test]
    fn transforms_of_one_and_two_dimensions_are_verified() {
        for line in ["fft --size 2", "fft --size 4096 --repeat 3", "fft2 --size 2", "fft2 --size 64"] {
            let outcome = outcome(line).unwrap();
            assert_eq!(
                (&outcome["verified"], &outcome["metrics"][0]["name"]),
                (&true.into(), &"seconds".into()),
                "{line}"
            );
        }
    }

    #[test]
    fn what_was_not_transformed_is_found() {
        for line in ["fft --size 64", "fft2 --size 8"] {
            let failure = prepared(line).verify().unwrap_err();
            assert!(failure.to_string().contains("is off by"), "{line}: {failure}");
            assert_eq!(failure.exit_code, 1);
        }
    }

    #[test]
    fn a_value_that_no_frequency_shows_is_found_by_the_inverse() {
        let (rows, columns) = (1, 64);
        let roots = || roots(columns, crate::area::Advice::Nothing).unwrap();
        let mut fft = Fft {
            shape: (rows, columns),
            values: Area::new(columns, crate::area::Advice::Nothing).unwrap(),
            roots: (roots(), roots()),
        };
        fft.reset();
        fft.run().unwrap();
        fft.values[5][0] += 1e-6;
        assert!(fft.verify().unwrap_err().to_string().contains("the inverse"));
    }
}
