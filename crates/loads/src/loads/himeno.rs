//! The Himeno benchmark's kernel: Jacobi iterations for Poisson's equation, a stencil of 19 points, after its published
//! description (Himeno, RIKEN). All coefficients are read from memory, though in the benchmark they are constant.

use crate::area::{Advice, Area};
use crate::clock::measure;
use crate::failure::{self, Failure};
use crate::load::{Load, Program, any_values};
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{ADVISE, Kind, Parameters, Setting};
use crate::scramble::fraction;

pub const HIMENO: Program = Program {
    name: "himeno",
    summary: "Jacobi iterations of the Himeno benchmark in f32, 34 operations a point; MFLOPS",
    settings: &[
        Setting { name: "size", kind: Kind::Word(&["XS", "S", "M"]), default: Some("S") },
        Setting { name: "iterations", kind: Kind::Number { least: 1, most: 1_000_000 }, default: Some("10") },
        ADVISE,
    ],
    check: any_values,
    prepare,
};

/// Points along i, j and k.
type Shape = [usize; 3];

const XS: Shape = [32, 32, 64];
const S: Shape = [64, 64, 128];
const M: Shape = [128, 128, 256];
const OPERATIONS: f64 = 34.0;
const OMEGA: f32 = 0.8;
/// Iterations of the comparison with the plain version, and how far an f32 may be off its f64 there.
const COMPARED: (usize, f64) = (3, 1e-5);

struct Grid {
    shape: Shape,
    /// The coefficients of the neighbours after a point, along i, j and k; and the reciprocal of the diagonal.
    a: [Area<f32>; 4],
    /// The coefficients of the mixed derivatives: i and j, j and k, i and k.
    b: [Area<f32>; 3],
    /// The coefficients of the neighbours before a point.
    c: [Area<f32>; 3],
    /// 1 where the equation holds, 0 where the pressure is given.
    bound: Area<f32>,
    source: Area<f32>,
    pressure: Area<f32>,
    next: Area<f32>,
}

struct Himeno {
    grid: Grid,
    iterations: usize,
    gosa: f64,
}

fn prepare(parameters: &Parameters) -> Result<Box<dyn Load>, Failure> {
    let shape = match parameters.text_of("size") {
        "XS" => XS,
        "S" => S,
        _ => M,
    };
    let grid = Grid::of_benchmark(shape, parameters.advice())?;
    Ok(Box::new(Himeno { grid, iterations: parameters.number("iterations"), gosa: f64::NAN }))
}

impl Grid {
    /// Return a grid of zeros.
    fn new(shape: Shape, advice: Advice) -> Result<Grid, Failure> {
        let array = || Area::new(shape.iter().product(), advice);
        Ok(Grid {
            shape,
            a: [array()?, array()?, array()?, array()?],
            b: [array()?, array()?, array()?],
            c: [array()?, array()?, array()?],
            bound: array()?,
            source: array()?,
            pressure: array()?,
            next: array()?,
        })
    }

    /// Return Poisson's equation without a source, on points at equal distances; the pressure begins as the square of
    /// i's share.
    fn of_benchmark(shape: Shape, advice: Advice) -> Result<Grid, Failure> {
        let mut grid = Grid::new(shape, advice)?;
        let [a0, a1, a2, diagonal] = &mut grid.a;
        for ones in [a0, a1, a2].into_iter().chain(&mut grid.c).chain([&mut grid.bound]) {
            ones.fill(1.0);
        }
        diagonal.fill(1.0 / 6.0);
        for zeros in grid.b.iter_mut().chain([&mut grid.source, &mut grid.next]) {
            zeros.fill(0.0);
        }
        grid.begin();
        Ok(grid)
    }

    fn begin(&mut self) {
        let [i_points, j_points, k_points] = self.shape;
        for (i, plane) in self.pressure.chunks_exact_mut(j_points * k_points).enumerate() {
            let share = i as f32 / (i_points - 1) as f32;
            plane.fill(share * share);
        }
    }

    fn inner_points(&self) -> f64 {
        self.shape.iter().map(|points| (points - 2) as f64).product()
    }

    /// Return gosa of the first iteration: the second difference of a square is the same everywhere.
    fn first_gosa(&self) -> f64 {
        self.inner_points() * (1.0 / (3.0 * ((self.shape[0] - 1) as f64).powi(2))).powi(2)
    }

    /// Do one iteration; return gosa, the sum of the squares of all residuals (f32 in a row, f64 over rows).
    fn iterate(&mut self) -> f64 {
        let [i_points, j_points, k_points] = self.shape;
        let rows = |i: usize| (1..j_points - 1).map(move |j| (i, j));
        let gosa = (1..i_points - 1).flat_map(rows).map(|(i, j)| f64::from(self.row(i, j))).sum();
        for (i, j) in (1..i_points - 1).flat_map(rows) {
            let inner = (i * j_points + j) * k_points + 1..(i * j_points + j + 1) * k_points - 1;
            self.pressure[inner.clone()].copy_from_slice(&self.next[inner]);
        }
        gosa
    }

    /// Compute a row of points along k.
    fn row(&mut self, i: usize, j: usize) -> f32 {
        let [_, j_points, k_points] = self.shape;
        let start = |i: usize, j: usize| (i * j_points + j) * k_points;
        let range = start(i, j)..start(i, j) + k_points;
        let p = |i: usize, j: usize| &self.pressure[start(i, j)..][..k_points];
        let (middle, i_after, i_before, j_after, j_before) =
            (p(i, j), p(i + 1, j), p(i - 1, j), p(i, j + 1), p(i, j - 1));
        let (after_after, after_before) = (p(i + 1, j + 1), p(i + 1, j - 1));
        let (before_after, before_before) = (p(i - 1, j + 1), p(i - 1, j - 1));
        let a = self.a.each_ref().map(|array| &array[range.clone()]);
        let b = self.b.each_ref().map(|array| &array[range.clone()]);
        let c = self.c.each_ref().map(|array| &array[range.clone()]);
        let (bound, source) = (&self.bound[range.clone()], &self.source[range.clone()]);
        let next = &mut self.next[range];
        let mut gosa = 0.0;
        for k in 1..k_points - 1 {
            let sum = a[0][k] * i_after[k]
                + a[1][k] * j_after[k]
                + a[2][k] * middle[k + 1]
                + b[0][k] * (after_after[k] - after_before[k] - before_after[k] + before_before[k])
                + b[1][k] * (j_after[k + 1] - j_before[k + 1] - j_after[k - 1] + j_before[k - 1])
                + b[2][k] * (i_after[k + 1] - i_before[k + 1] - i_after[k - 1] + i_before[k - 1])
                + c[0][k] * i_before[k]
                + c[1][k] * j_before[k]
                + c[2][k] * middle[k - 1]
                + source[k];
            let residual = (sum * a[3][k] - middle[k]) * bound[k];
            gosa += residual * residual;
            next[k] = middle[k] + OMEGA * residual;
        }
        gosa
    }

    /// Return a grid of arbitrary coefficients, so that each term of the stencil counts.
    fn scrambled(shape: Shape) -> Result<Grid, Failure> {
        let mut grid = Grid::new(shape, Advice::Nothing)?;
        let arrays = grid.a.iter_mut().chain(&mut grid.b).chain(&mut grid.c);
        let arrays = arrays.chain([&mut grid.bound, &mut grid.source, &mut grid.pressure]);
        for (number, array) in (0..).zip(arrays) {
            array.iter_mut().zip(0..).for_each(|(value, index)| *value = fraction(number << 32 | index) as f32);
        }
        Ok(grid)
    }
}

/// Compute the same by the definition, point by point in f64: the pressure after some iterations, and the last gosa.
fn compute_by_definition(grid: &Grid, iterations: usize) -> (Vec<f64>, f64) {
    let [i_points, j_points, k_points] = grid.shape;
    let place = |point: [usize; 3]| (point[0] * j_points + point[1]) * k_points + point[2];
    let mut pressure: Vec<f64> = grid.pressure.iter().map(|value| f64::from(*value)).collect();
    let mut gosa = 0.0;
    for _ in 0..iterations {
        let old = pressure.clone();
        // The pressure at a distance of -1, 0 or 1 along i, j and k.
        let value_at = |point: [usize; 3], distance: [isize; 3]| {
            old[place(std::array::from_fn(|axis| point[axis].wrapping_add_signed(distance[axis])))]
        };
        gosa = 0.0;
        let inner = (1..i_points - 1)
            .flat_map(|i| (1..j_points - 1).flat_map(move |j| (1..k_points - 1).map(move |k| [i, j, k])));
        for point in inner {
            let index = place(point);
            let mut sum = f64::from(grid.source[index]);
            for axis in 0..3 {
                let unit = |sign: isize| std::array::from_fn(|other| if other == axis { sign } else { 0 });
                sum += f64::from(grid.a[axis][index]) * value_at(point, unit(1));
                sum += f64::from(grid.c[axis][index]) * value_at(point, unit(-1));
            }
            for (mixed, (one, other)) in [(0, 1), (1, 2), (0, 2)].into_iter().enumerate() {
                for (sign_of_one, sign_of_other) in [(1, 1), (1, -1), (-1, 1), (-1, -1)] {
                    let mut distance = [0; 3];
                    (distance[one], distance[other]) = (sign_of_one, sign_of_other);
                    let sign = (sign_of_one * sign_of_other) as f64;
                    sum += sign * f64::from(grid.b[mixed][index]) * value_at(point, distance);
                }
            }
            let residual = (sum * f64::from(grid.a[3][index]) - old[index]) * f64::from(grid.bound[index]);
            gosa += residual * residual;
            pressure[index] = old[index] + f64::from(OMEGA) * residual;
        }
    }
    (pressure, gosa)
}

/// Check that the kernel agrees with the plain version, up to rounding.
fn compare(mut grid: Grid) -> Result<(), Failure> {
    let (iterations, tolerated) = COMPARED;
    let (pressure, gosa) = compute_by_definition(&grid, iterations);
    let last_gosa = (0..iterations).map(|_| grid.iterate()).last().unwrap_or(f64::NAN);
    let largest = pressure.iter().fold(1.0, |largest: f64, value| largest.max(value.abs()));
    let is_near = |computed: f32, value: f64| (f64::from(computed) - value).abs() <= tolerated * largest;
    let wrong = grid.pressure.iter().zip(&pressure).filter(|(computed, value)| !is_near(**computed, **value)).count();
    if wrong > 0 {
        return Err(failure::wrong_result(format!("{wrong} points are not what the plain version gives")));
    }
    match (last_gosa - gosa).abs() <= 10.0 * tolerated * gosa {
        true => Ok(()),
        false => Err(failure::wrong_result(format!("gosa is {last_gosa:e}, and {gosa:e} by the plain version"))),
    }
}

impl Himeno {
    /// Return whether the solution is symmetric: the problem is the same seen from the other end of j, and of k.
    fn is_symmetric(&self) -> bool {
        let [i_points, j_points, k_points] = self.grid.shape;
        let pressure = |i: usize, j: usize, k: usize| self.grid.pressure[(i * j_points + j) * k_points + k];
        let is_near = |one: f32, other: f32| (one - other).abs() <= 1e-5;
        (0..i_points).all(|i| {
            (0..j_points).all(|j| {
                (0..k_points).all(|k| {
                    let value = pressure(i, j, k);
                    is_near(value, pressure(i, j_points - 1 - j, k)) && is_near(value, pressure(i, j, k_points - 1 - k))
                })
            })
        })
    }
}

impl Load for Himeno {
    fn reset(&mut self) {
        self.grid.begin();
    }

    fn run(&mut self) -> Result<Repetition, Failure> {
        let Himeno { grid, iterations, .. } = self;
        let (gosa, timing) = measure(|| (0..*iterations).map(|_| grid.iterate()).last().unwrap_or(f64::NAN));
        self.gosa = gosa;
        let operations = OPERATIONS * self.grid.inner_points() * self.iterations as f64;
        Ok(Repetition { readings: vec![Reading::mflops(operations, &timing), Reading::seconds(&timing)], timing })
    }

    fn verify(&mut self) -> Result<Facts, Failure> {
        let first = self.grid.first_gosa();
        // Residuals are differences of numbers near 1, of which f32 keeps seven digits.
        let is_right = match self.iterations {
            1 => (self.gosa / first - 1.0).abs() < 0.02,
            _ => self.gosa > 0.0 && self.gosa < first * 1.02,
        };
        if !is_right {
            return Err(failure::wrong_result(format!(
                "gosa is {:e}, after {first:e} in the first iteration",
                self.gosa
            )));
        }
        if !self.is_symmetric() {
            return Err(failure::wrong_result("the pressure is not symmetric"));
        }
        compare(Grid::of_benchmark(XS, Advice::Nothing)?)?;
        compare(Grid::scrambled(XS)?)?;
        Ok([("gosa".into(), self.gosa.into())].into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::test::{outcome, prepared};

    #[test]
    fn the_residual_of_the_first_iteration_is_the_one_on_paper() {
        let gosa = Grid::of_benchmark(XS, Advice::Nothing).unwrap().iterate();
        // 30 x 30 x 62 inner points; (1 / (3 31^2))^2 each
        assert!((gosa / (55_800.0 / (9.0 * 31f64.powi(4))) - 1.0).abs() < 1e-3, "{gosa}");
    }

    #[test]
    fn iterations_are_timed_and_verified() {
        for iterations in [1, 4] {
            let outcome = outcome(&format!("himeno --size XS --iterations {iterations} --repeat 2")).unwrap();
            assert_eq!(outcome["metrics"][0]["values"].as_array().unwrap().len(), 2);
            assert!(outcome["facts"]["gosa"].as_f64().unwrap() > 0.0 && outcome["verified"] == true);
        }
    }

    #[test]
    fn every_coefficient_and_every_neighbour_counts() {
        let shape = [5, 6, 7];
        let before = Grid::scrambled(shape).map(|mut grid| grid.iterate()).unwrap();
        let middle = (2 * 6 + 3) * 7 + 3;
        let changes: [fn(&mut Grid) -> &mut Area<f32>; 11] = [
            |grid| &mut grid.a[0],
            |grid| &mut grid.a[1],
            |grid| &mut grid.a[2],
            |grid| &mut grid.a[3],
            |grid| &mut grid.b[0],
            |grid| &mut grid.b[1],
            |grid| &mut grid.b[2],
            |grid| &mut grid.c[0],
            |grid| &mut grid.c[1],
            |grid| &mut grid.c[2],
            |grid| &mut grid.source,
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut grid = Grid::scrambled(shape).unwrap();
            change(&mut grid)[middle] += 1.0;
            assert_ne!(grid.iterate(), before, "{number}");
            let mut grid = Grid::scrambled(shape).unwrap();
            change(&mut grid)[middle] += 1.0;
            compare(grid).unwrap();
        }
    }

    #[test]
    fn a_pressure_that_did_not_change_is_found() {
        let failure = prepared("himeno --size XS").verify().unwrap_err();
        assert!(failure.to_string().contains("gosa is NaN"), "{failure}");
    }

    #[test]
    fn a_point_that_is_off_is_found() {
        let mut himeno =
            Himeno { grid: Grid::of_benchmark(XS, Advice::Nothing).unwrap(), iterations: 1, gosa: f64::NAN };
        himeno.run().unwrap();
        assert!(himeno.is_symmetric());
        himeno.grid.pressure[(5 * 32 + 3) * 64 + 9] += 1e-3;
        assert!(himeno.verify().unwrap_err().to_string().contains("symmetric"));
    }
}
