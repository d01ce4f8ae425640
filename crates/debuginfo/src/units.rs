//! Compilation units, and which code each was compiled to.

use std::io::Write;

use gimli::constants::DW_TAG_compile_unit;
use serde::Serialize;

use crate::dwarf::{dwarf, ranges, said, sections, text};
use crate::file::Binary;
use crate::limits::Steps;
use crate::output::Output;

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    Unit(Unit),
}

#[derive(Serialize)]
struct Unit {
    /// The name as the compiler was given it.
    name: String,
    /// The directory in which the compiler ran; empty if that isn't known.
    directory: String,
    ranges: Vec<(u64, u64)>,
}

/// Print the units that have a name and code.
pub fn tell(binary: &Binary, output: &mut Output<impl Write>) -> Result<(), String> {
    let sections = sections(binary)?;
    let dwarf = dwarf(&sections, binary);
    let mut steps = Steps::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().map_err(said)? {
        steps.take(1)?;
        let unit = dwarf.unit(header).map_err(said)?;
        let root = unit.entry(unit.header.root_offset()).map_err(said)?;
        let ranges = ranges(&dwarf, &unit, &root, &mut steps)?;
        let Some(name) = unit.name.filter(|_| root.tag() == DW_TAG_compile_unit && !ranges.is_empty()) else {
            continue;
        };
        let directory = unit.comp_dir.map_or(Ok(String::new()), text)?;
        output.line(&Told::Unit(Unit { name: text(name)?, directory, ranges }))?;
    }
    Ok(())
}
