//! The fast Fourier transform in two dimensions: its columns are walked at a stride of a row.

use super::fft::prepare;
use crate::load::{Program, any_values};
use crate::parameters::{ADVISE, Kind, Setting};

pub const FFT2: Program = Program {
    name: "fft2",
    summary: "Fourier transform of --size x --size complex points of f64, rows, then columns; seconds",
    settings: &[
        Setting { name: "size", kind: Kind::PowerOfTwo { least: 2, most: 1 << 15 }, default: Some("1024") },
        ADVISE,
    ],
    check: any_values,
    prepare: |parameters| prepare(parameters, (parameters.number("size"), parameters.number("size"))),
};
