//! The Mandelbrot set in a fixed window: computing with next to no memory.

use crate::area::Area;
use crate::clock::measure;
use crate::failure::{self, Failure};
use crate::load::{Load, Program, any_values};
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{ADVISE, Kind, PROCESSES, Parameters, Setting, THREADS};
use crate::threads;

pub const MANDELBROT: Program = Program {
    name: "mandelbrot",
    summary: "the Mandelbrot set from -2 - 1.25i to 0.5 + 1.25i in --size x --size points; seconds",
    settings: &[
        Setting { name: "size", kind: Kind::Number { least: 1, most: 32_768 }, default: Some("512") },
        Setting { name: "iterations", kind: Kind::Number { least: 1, most: 1_000_000 }, default: Some("1000") },
        THREADS,
        PROCESSES,
        ADVISE,
    ],
    check: any_values,
    prepare,
};

/// Rows of which one is computed again.
const VERIFIED_EVERY: usize = 16;

struct Mandelbrot {
    size: usize,
    iterations: u32,
    threads: usize,
    /// The counts by row and column: iterations until a point is known to escape.
    counts: Area<u32>,
}

fn prepare(parameters: &Parameters) -> Result<Box<dyn Load>, Failure> {
    let size = parameters.number("size");
    let mut counts = Area::new(size * size, parameters.advice())?;
    counts.fill(u32::MAX);
    let (iterations, threads) = (parameters.number("iterations") as u32, parameters.number("threads"));
    Ok(Box::new(Mandelbrot { size, iterations, threads, counts }))
}

/// Return a point's coordinates; rows lie symmetric to the real axis, exactly.
fn point(size: usize, row: usize, column: usize) -> (f64, f64) {
    let from_middle = |place: usize| (2 * place + 1) as f64 - size as f64;
    (-0.75 + 1.25 * from_middle(column) / size as f64, 1.25 * from_middle(row) / size as f64)
}

/// Return the iterations of z = z z + c until |z| is above 2; `most` where it isn't by then.
fn escape(most: u32, (c_real, c_imaginary): (f64, f64)) -> u32 {
    let (mut real, mut imaginary) = (0.0, 0.0);
    for count in 0..most {
        let (real_squared, imaginary_squared) = (real * real, imaginary * imaginary);
        if real_squared + imaginary_squared > 4.0 {
            return count;
        }
        imaginary = 2.0 * real * imaginary + c_imaginary;
        real = real_squared - imaginary_squared + c_real;
    }
    most
}

/// Draw all rows; each thread has every so many-th one, since rows differ in what they cost.
fn draw(size: usize, iterations: u32, threads: usize, counts: &mut [u32]) {
    let mut parts: Vec<Vec<(usize, &mut [u32])>> = (0..threads.min(size)).map(|_| Vec::new()).collect();
    for (row, of_row) in counts.chunks_exact_mut(size).enumerate() {
        let part = row % parts.len();
        parts[part].push((row, of_row));
    }
    threads::in_parallel(parts, |rows| {
        for (row, of_row) in rows {
            for (column, count) in of_row.iter_mut().enumerate() {
                *count = escape(iterations, point(size, row, column));
            }
        }
    });
}

/// Count like `escape`, with complex numbers as pairs, and the orbit's last points kept: a point whose orbit returns to
/// one of them never escapes.
fn escape_by_definition(most: u32, c: (f64, f64)) -> u32 {
    let (mut z, mut saved) = ((0.0f64, 0.0f64), (f64::NAN, f64::NAN));
    for count in 0..most {
        if z.0 * z.0 + z.1 * z.1 > 4.0 {
            return count;
        }
        let squared = (z.0 * z.0 - z.1 * z.1, 2.0 * z.0 * z.1);
        z = (squared.0 + c.0, squared.1 + c.1);
        if z == saved {
            return most;
        }
        if count.is_power_of_two() {
            saved = z;
        }
    }
    most
}

/// Return FNV-1a of all counts in the order of their places: the same for any number of threads.
fn checksum(counts: &[u32]) -> u64 {
    let bytes = counts.iter().flat_map(|count| count.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Return the first row that isn't its mirror image's, or isn't what computing it again gives.
fn first_wrong(size: usize, iterations: u32, counts: &[u32]) -> Option<usize> {
    let row = |number: usize| &counts[number * size..][..size];
    let recomputed_row =
        |number: usize| (0..size).map(move |column| escape_by_definition(iterations, point(size, number, column)));
    (0..size).find(|&number| {
        row(number) != row(size - 1 - number)
            || (number % VERIFIED_EVERY == 0 && !row(number).iter().copied().eq(recomputed_row(number)))
    })
}

impl Load for Mandelbrot {
    fn reset(&mut self) {
        self.counts.fill(u32::MAX);
    }

    fn run(&mut self) -> Result<Repetition, Failure> {
        let Mandelbrot { size, iterations, threads, counts } = self;
        let ((), timing) = measure(|| draw(*size, *iterations, *threads, counts));
        Ok(Repetition { readings: vec![Reading::seconds(&timing)], timing })
    }

    fn verify(&mut self) -> Result<Facts, Failure> {
        let wrong = |reason: String| Err(failure::wrong_result(reason));
        if let Some(row) = first_wrong(self.size, self.iterations, &self.counts) {
            return wrong(format!("row {row} differs from its mirror image, or from a second computation"));
        }
        let sum = checksum(&self.counts);
        let known = KNOWN.iter().find(|(size, iterations, _)| (*size, *iterations) == (self.size, self.iterations));
        match known {
            Some((_, _, known)) if *known != sum => wrong(format!("the checksum is {sum:016x}, not {known:016x}")),
            _ => Ok([("checksum".into(), format!("{sum:016x}").into())].into_iter().collect()),
        }
    }
}

/// Checksums by size and iterations, from another program's pictures (numpy's arithmetic).
const KNOWN: &[(usize, u32, u64)] = &[(64, 100, 0xf869_307b_2cdb_c765), (512, 1000, 0xe732_83eb_462b_8cb9)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::test::{outcome, prepared};

    #[test]
    fn points_escape_when_they_should() {
        assert_eq!(escape(100, (0.0, 0.0)), 100);
        assert_eq!(escape(100, (-1.0, 0.0)), 100);
        // 0, 2, 6: the third is above 2.
        assert_eq!(escape(100, (2.0, 0.0)), 2);
        assert_eq!(escape(100, (2.0, 2.0)), 1);
    }

    #[test]
    fn the_checksum_does_not_depend_on_threads() {
        let checksums: Vec<_> = [1, 2, 3, 100]
            .map(|threads| outcome(&format!("mandelbrot --size 64 --iterations 100 --threads {threads}")).unwrap())
            .map(|outcome| outcome["facts"]["checksum"].clone())
            .into();
        assert!(checksums.iter().all(|checksum| *checksum == checksums[0]), "{checksums:?}");
    }

    #[test]
    fn odd_and_smallest_sizes_are_verified() {
        for size in [1, 2, 33] {
            assert_eq!(outcome(&format!("mandelbrot --size {size} --iterations 50")).unwrap()["verified"], true);
        }
    }

    #[test]
    fn a_picture_that_was_not_drawn_is_found() {
        let failure = prepared("mandelbrot --size 64 --iterations 100").verify().unwrap_err();
        assert!(failure.to_string().contains("row 0 "), "{failure}");
    }
}
