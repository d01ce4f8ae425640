//! Line tables: which line of which source each piece of code was compiled from.

use std::io::Write;

use gimli::{DebugLineOffset, LineProgramHeader, LineRow, Section};
use serde::Serialize;

use crate::dwarf::{Bytes, Dwarf, address_size, dwarf, joined, said, sections, text};
use crate::file::Binary;
use crate::limits::{Numbers, Steps};
use crate::output::Output;

/// Rows in a line of the answer.
const PIECES: usize = 1 << 16;

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    /// The directory in which the compiler ran, empty if the table doesn't say, and the path from there. Files are
    /// numbered from 0 on, as they are told.
    File(String, String),
    Pieces(Pieces),
}

/// Code of one line each, and lines that begin where another has the code.
#[derive(Default, Serialize)]
struct Pieces {
    /// An address.
    base: u64,
    /// The starts of the pieces, from the base on: shorter numbers.
    starts: Vec<u64>,
    /// Bytes; 0 where the code is another line's.
    lengths: Vec<u64>,
    files: Vec<u32>,
    lines: Vec<u32>,
    /// The line, or a statement of it, begins here (is_stmt).
    begins: Vec<u8>,
}

/// A row of a table, as far as it is told.
struct Row {
    address: u64,
    file: u64,
    line: u32,
    begins: bool,
    is_end: bool,
}

impl Row {
    fn of(row: &LineRow) -> Row {
        let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(u32::MAX));
        let (address, file, is_end) = (row.address(), row.file_index(), row.end_sequence());
        Row { address, file, line, begins: row.is_stmt(), is_end }
    }
}

pub fn tell(binary: &Binary, output: &mut Output<impl Write>) -> Result<(), String> {
    let sections = sections(binary)?;
    let dwarf = dwarf(&sections, binary);
    let mut steps = Steps::new();
    let mut numbers = Numbers::new();
    let mut offset = 0;
    while offset < dwarf.debug_line.reader().len() {
        let place = DebugLineOffset(offset);
        let unreadable = |error: gimli::Error| format!("its line table at {:#x} can't be read: {error}", place.0);
        let program = dwarf.debug_line.program(place, address_size(binary), None, None).map_err(unreadable)?;
        offset += program.header().format().initial_length_size() as usize + program.header().unit_length();
        let mut files = None;
        let mut pieces = Pieces::default();
        let mut last: Option<Row> = None;
        let mut rows = program.rows();
        while let Some((header, row)) = rows.next_row().map_err(unreadable)? {
            steps.take(1)?;
            if files.is_none() {
                files = Some(told_files(&dwarf, header, &mut numbers, output)?);
            }
            let row = Row::of(row);
            if let Some(last) = &last {
                pieces.add(last, row.address, files.as_deref().unwrap_or_default());
            }
            last = Some(row);
            if pieces.starts.len() == PIECES {
                pieces.tell(output)?;
            }
        }
        if let Some(last) = &last {
            pieces.add(last, last.address, files.as_deref().unwrap_or_default());
        }
        pieces.tell(output)?;
    }
    Ok(())
}

impl Pieces {
    /// Tell them, and begin anew.
    fn tell(&mut self, output: &mut Output<impl Write>) -> Result<(), String> {
        let mut pieces = std::mem::take(self);
        let Some(base) = pieces.starts.iter().min().copied() else { return Ok(()) };
        pieces.base = base;
        pieces.starts.iter_mut().for_each(|start| *start -= base);
        output.line(&Told::Pieces(pieces))
    }

    /// Add the code from this row to the address where the next one begins.
    fn add(&mut self, row: &Row, end: u64, files: &[Option<u32>]) {
        let file = usize::try_from(row.file).ok().and_then(|file| *files.get(file)?);
        let is_piece = end > row.address || (end == row.address && row.begins);
        if let (Some(file), true) = (file, is_piece && !row.is_end && row.line > 0) {
            self.starts.push(row.address);
            self.lengths.push(end - row.address);
            self.files.push(file);
            self.lines.push(row.line);
            self.begins.push(u8::from(row.begins));
        }
    }
}

/// Print the files of a table, and return their numbers in the answer, by their number in the table.
fn told_files(
    dwarf: &Dwarf,
    header: &LineProgramHeader<Bytes>,
    numbers: &mut Numbers<(String, String)>,
    output: &mut Output<impl Write>,
) -> Result<Vec<Option<u32>>, String> {
    let first = first_file(header);
    let mut files = vec![None; first];
    for index in first..first + header.file_names().len() {
        let Some(path) = path_of(dwarf, header, index as u64)? else { continue };
        let file = (directory_of(dwarf, header)?, path);
        let (number, is_new) = numbers.number(&file, file.0.len() + file.1.len())?;
        files.push(Some(number));
        if is_new {
            output.line(&Told::File(file.0, file.1))?;
        }
    }
    Ok(files)
}

/// Return the number of the first file: 1 up to DWARF 4.
fn first_file(header: &LineProgramHeader<Bytes>) -> usize {
    if header.version() >= 5 { 0 } else { 1 }
}

/// Return the directory in which the compiler ran; empty before DWARF 5, where the unit has it.
fn directory_of(dwarf: &Dwarf, header: &LineProgramHeader<Bytes>) -> Result<String, String> {
    let known = header.include_directories().first().filter(|_| header.version() >= 5);
    known.map_or(Ok(String::new()), |value| text(dwarf.attr_line_string(*value).map_err(said)?))
}

/// Return the path of a file of a table, from the directory in which the compiler ran.
pub fn path_of(dwarf: &Dwarf, header: &LineProgramHeader<Bytes>, file: u64) -> Result<Option<String>, String> {
    let Some(entry) = header.file(file).filter(|_| file >= first_file(header) as u64) else { return Ok(None) };
    let read = |value| text(dwarf.attr_line_string(value).map_err(said)?);
    let directory = entry.directory(header).map_or(Ok(String::new()), read)?;
    Ok(Some(joined(&directory, &read(entry.path_name())?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return the lines for rows of address, file, line, is_stmt and end_sequence: start, length, file and line.
    fn pieces(rows: &[(u64, u64, u32, bool, bool)]) -> Vec<(u64, u64, u32, u32)> {
        let mut pieces = Pieces::default();
        let row = |&(address, file, line, begins, is_end)| Row { address, file, line, begins, is_end };
        for (last, next) in rows.iter().zip(&rows[1..]) {
            pieces.add(&row(last), next.0, &[None, Some(7)]);
        }
        let bounds = pieces.starts.into_iter().zip(pieces.lengths);
        bounds.zip(pieces.files.into_iter().zip(pieces.lines)).map(|((a, b), (c, d))| (a, b, c, d)).collect()
    }

    #[test]
    fn a_row_reaches_to_the_next_one() {
        assert_eq!(
            pieces(&[(8, 1, 3, true, false), (12, 1, 4, false, false), (20, 1, 4, false, true)]),
            [(8, 4, 7, 3), (12, 8, 7, 4)]
        );
    }

    #[test]
    fn rows_without_a_line_a_file_or_code_and_what_is_behind_the_end_are_no_pieces() {
        for row in [(8, 1, 0, true, false), (8, 0, 3, true, false), (8, 9, 3, true, false), (8, 1, 3, true, true)] {
            assert_eq!(pieces(&[row, (12, 1, 4, true, false)]), []);
        }
        for address in [4, 8] {
            assert_eq!(pieces(&[(8, 1, 3, false, false), (address, 1, 4, true, false)]), []);
        }
    }

    #[test]
    fn a_line_can_begin_where_another_has_the_code() {
        assert_eq!(pieces(&[(8, 1, 3, true, false), (8, 1, 4, true, false)]), [(8, 0, 7, 3)]);
    }
}
