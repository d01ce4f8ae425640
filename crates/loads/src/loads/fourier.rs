//! The fast Fourier transform of a power of two of points, radix 2, in place, and checks of its result.

use crate::area::{Advice, Area};
use crate::failure::Failure;
use std::f64::consts::TAU;

/// Real and imaginary part.
pub type Complex = [f64; 2];

pub fn times(x: Complex, y: Complex) -> Complex {
    [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]
}

/// Return exp(-2 pi i turns / points).
fn root(points: usize, turns: usize) -> Complex {
    let (sine, cosine) = (TAU * turns as f64 / points as f64).sin_cos();
    [cosine, -sine]
}

/// Return the roots of unity that a transform of so many points needs.
pub fn roots(points: usize, advice: Advice) -> Result<Area<Complex>, Failure> {
    let mut roots = Area::new((points / 2).max(1), advice)?;
    roots.iter_mut().enumerate().for_each(|(turns, place)| *place = root(points, turns));
    Ok(roots)
}

/// Transform the `points` values at `start`, `start + stride`, ...; `roots` are those of as many points.
pub fn transform(values: &mut [Complex], start: usize, stride: usize, points: usize, roots: &[Complex]) {
    let values = &mut values[start..];
    sort_by_reversed_bits(values, stride, points);
    let mut half = 1;
    while half < points {
        let turns = points / (2 * half);
        for group in (0..points).step_by(2 * half) {
            for pair in 0..half {
                let (low, high) = ((group + pair) * stride, (group + pair + half) * stride);
                let (even, odd) = (values[low], times(values[high], roots[pair * turns]));
                values[low] = [even[0] + odd[0], even[1] + odd[1]];
                values[high] = [even[0] - odd[0], even[1] - odd[1]];
            }
        }
        half *= 2;
    }
}

fn sort_by_reversed_bits(values: &mut [Complex], stride: usize, points: usize) {
    if points < 2 {
        return;
    }
    let unused = usize::BITS - points.ilog2();
    for place in 0..points {
        let other = place.reverse_bits() >> unused;
        if place < other {
            values.swap(place * stride, other * stride);
        }
    }
}

/// Turn a transform back into what was transformed, by `forward` on the conjugates.
pub fn invert(values: &mut [Complex], forward: impl FnOnce(&mut [Complex])) {
    values.iter_mut().for_each(|value| value[1] = -value[1]);
    forward(values);
    let points = values.len() as f64;
    values.iter_mut().for_each(|value| *value = [value[0] / points, -value[1] / points]);
}

/// Return one value of the transform by its definition, over rows and columns of values (one row for one dimension).
pub fn by_definition(
    (rows, columns): (usize, usize),
    (row_frequency, column_frequency): (usize, usize),
    value: impl Fn(u64) -> Complex,
) -> Complex {
    let mut sum = [0.0; 2];
    for row in 0..rows {
        let mut of_row = [0.0; 2];
        for column in 0..columns {
            let part =
                times(value((row * columns + column) as u64), root(columns, column * column_frequency % columns));
            of_row = [of_row[0] + part[0], of_row[1] + part[1]];
        }
        let part = times(of_row, root(rows, row * row_frequency % rows));
        sum = [sum[0] + part[0], sum[1] + part[1]];
    }
    sum
}

pub fn distance(x: Complex, y: Complex) -> f64 {
    (x[0] - y[0]).hypot(x[1] - y[1])
}

/// Return the largest error that rounding explains in a transform of so many values of size 1, whose own size is the
/// root of that.
pub fn tolerance(points: usize) -> f64 {
    1e-11 * (points as f64).sqrt()
}

/// Return the frequencies that are looked at: the lowest ones, the highest, and some between.
pub fn frequencies(points: usize) -> [usize; 5] {
    [0, 1 % points, points / 3, points / 2, points - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scramble::fraction;

    fn value(index: u64) -> Complex {
        [fraction(2 * index), fraction(2 * index + 1)]
    }

    #[test]
    fn every_value_of_a_transform_is_that_of_the_definition() {
        for points in [1, 2, 4, 64] {
            let mut values: Vec<Complex> = (0..points as u64).map(value).collect();
            transform(&mut values, 0, 1, points, &roots(points, Advice::Nothing).unwrap());
            for (frequency, transformed) in values.iter().enumerate() {
                let expected = by_definition((1, points), (0, frequency), value);
                assert!(distance(*transformed, expected) < 1e-12, "{points} {frequency}");
            }
        }
    }

    #[test]
    fn a_stride_leaves_what_lies_between_alone() {
        let mut values: Vec<Complex> = (0..8).map(value).collect();
        transform(&mut values, 1, 2, 4, &roots(4, Advice::Nothing).unwrap());
        assert!((0..8).step_by(2).all(|index| values[index] == value(index as u64)));
        for frequency in 0..4 {
            let expected = by_definition((1, 4), (0, frequency), |index| value(2 * index + 1));
            assert!(distance(values[2 * frequency + 1], expected) < 1e-12, "{frequency}");
        }
    }
}
