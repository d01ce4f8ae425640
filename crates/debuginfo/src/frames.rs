//! The functions that an address is code of: the one that was compiled, and those that are inlined in it there.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::ops::Range;
use std::rc::Rc;

use gimli::{AttributeValue, DebugInfoOffset, UnitHeader, constants};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolFlags, elf};
use serde::Serialize;

use crate::dwarf::{Bytes, Dwarf, Entry, Unit, Value, dwarf, joined, ranges, said, sections, text};
use crate::file::{self, Binary};
use crate::limits::{DEEPEST, MOST_ADDRESSES, Numbers, Steps, name};
use crate::lines::path_of;
use crate::output::Output;

/// Entries from one that has a name to the one that is named.
const MOST_HOPS: usize = 16;
/// Units that are kept because entries of others refer to them.
const UNITS_KEPT: usize = 256;
/// Names that are kept because several entries have them.
const NAMES_KEPT: usize = 1 << 14;

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Told<'a> {
    /// A function and a place in the source: path, line and column; texts are empty and numbers 0 if they aren't known.
    /// The place is where the code is from, or the call of what is inlined. Frames are numbered as they are told.
    Frame(&'a str, &'a str, u64, u64),
    /// The frames of an address, the innermost first, at least one.
    Frames(Vec<u32>),
}

/// A place in the source.
#[derive(Clone, Copy, Default)]
struct Place {
    /// A number in `Answer::texts`.
    file: u32,
    line: u64,
    column: u64,
}

/// A function, or an inlined one and where it is called.
#[derive(Clone, Copy)]
struct Scope {
    function: u32,
    call: Place,
}

/// What is known of the addresses asked for.
struct Answer {
    /// The addresses in their order, each once.
    addresses: Vec<u64>,
    /// The unit that each is in.
    units: Vec<Option<usize>>,
    places: Vec<Option<Place>>,
    /// The outermost first.
    scopes: Vec<Vec<Scope>>,
    texts: Numbers<String>,
    by_number: Vec<String>,
    steps: Steps,
}

/// Read the addresses from stdin.
pub fn addresses(input: &mut impl BufRead) -> Result<Vec<u64>, String> {
    let mut addresses = Vec::new();
    for (index, line) in input.lines().enumerate() {
        let line = line.map_err(|error| format!("can't read the addresses: {error}"))?;
        let digits = line.trim().trim_start_matches("0x");
        let number =
            u64::from_str_radix(digits, 16).map_err(|_| format!("line {} of stdin is not an address", index + 1))?;
        addresses.push(number);
        if addresses.len() > MOST_ADDRESSES {
            return Err(format!("more than {MOST_ADDRESSES} addresses on stdin"));
        }
    }
    Ok(addresses)
}

pub fn tell(binary: &Binary, asked: &[u64], output: &mut Output<impl Write>) -> Result<(), String> {
    let sections = sections(binary)?;
    let dwarf = dwarf(&sections, binary);
    let mut answer = Answer::new(asked);
    let mut names = Names::new(&dwarf)?;
    for number in 0..names.headers.len() {
        answer.steps.take(1)?;
        let unit = dwarf.unit(names.headers[number]).map_err(said)?;
        let root = unit.entry(unit.header.root_offset()).map_err(said)?;
        let covered = ranges(&dwarf, &unit, &root, &mut answer.steps)?;
        if answer.claim(number, &covered)? {
            answer.add_places(number, &dwarf, &unit)?;
            answer.add_scopes(number, &dwarf, &unit, &mut names)?;
        }
    }
    answer.tell(asked, &symbols(binary)?, output)
}

impl Answer {
    fn new(asked: &[u64]) -> Answer {
        let mut addresses = asked.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        let number = addresses.len();
        Answer {
            addresses,
            units: vec![None; number],
            places: vec![None; number],
            scopes: vec![Vec::new(); number],
            texts: Numbers::new(),
            by_number: Vec::new(),
            steps: Steps::new(),
        }
    }

    /// Return the range of the addresses from the start to before the end.
    fn within(&mut self, (start, end): (u64, u64)) -> Result<Range<usize>, String> {
        let index_of = |address| self.addresses.partition_point(|known| *known < address);
        let range = index_of(start)..index_of(end);
        self.steps.take(1 + range.len())?;
        Ok(range)
    }

    /// Return whether this unit contains an address that no other unit has claimed.
    fn claim(&mut self, unit: usize, covered: &[(u64, u64)]) -> Result<bool, String> {
        let mut has_any = false;
        for range in covered {
            for index in self.within(*range)? {
                has_any |= self.units[index].is_none();
                self.units[index].get_or_insert(unit);
            }
        }
        Ok(has_any)
    }

    fn text_number(&mut self, text: String) -> Result<u32, String> {
        let (number, is_new) = self.texts.number(&text, 2 * text.len())?;
        if is_new {
            self.by_number.push(text);
        }
        Ok(number)
    }

    /// Return the number of the path of a file of a unit's line table, in the directory that the compiler ran in.
    fn file_number(&mut self, dwarf: &Dwarf, unit: &Unit, file: u64) -> Result<u32, String> {
        let program = unit.line_program.as_ref();
        let path = program.map_or(Ok(None), |program| path_of(dwarf, program.header(), file))?;
        let directory = unit.comp_dir.map_or(Ok(String::new()), text)?;
        self.text_number(path.map_or(String::new(), |path| joined(&directory, &path)))
    }

    fn add_places(&mut self, number: usize, dwarf: &Dwarf, unit: &Unit) -> Result<(), String> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        let mut files: HashMap<u64, u32> = HashMap::new();
        let mut rows = program.rows();
        let mut last = None;
        while let Some((_, row)) = rows.next_row().map_err(said)? {
            self.steps.take(1)?;
            if let Some((start, file, line, column)) = last {
                for index in self.within((start, row.address()))? {
                    if self.units[index] == Some(number) && self.places[index].is_none() {
                        let file = match files.get(&file) {
                            Some(known) => *known,
                            None => *files.entry(file).or_insert(self.file_number(dwarf, unit, file)?),
                        };
                        self.places[index] = Some(Place { file, line, column });
                    }
                }
            }
            let line = row.line().map_or(0, |line| line.get());
            let column = match row.column() {
                gimli::ColumnType::LeftEdge => 0,
                gimli::ColumnType::Column(column) => column.get(),
            };
            last = (!row.end_sequence()).then_some((row.address(), row.file_index(), line, column));
        }
        Ok(())
    }

    fn add_scopes<'a>(
        &mut self,
        number: usize,
        dwarf: &Dwarf<'a>,
        unit: &Unit<'a>,
        names: &mut Names<'_, 'a>,
    ) -> Result<(), String> {
        let mut entries = unit.entries_raw(None).map_err(said)?;
        let mut entry = Entry::null();
        while !entries.is_empty() {
            self.steps.take(1)?;
            if !entries.read_entry(&mut entry).map_err(said)? {
                continue;
            }
            let is_inlined = entry.tag() == constants::DW_TAG_inlined_subroutine;
            if !is_inlined && entry.tag() != constants::DW_TAG_subprogram {
                continue;
            }
            let mut scope = None;
            for range in ranges(dwarf, unit, &entry, &mut self.steps)? {
                for index in self.within(range)? {
                    if self.units[index] != Some(number) {
                        continue;
                    }
                    let entry_scope = match scope {
                        Some(known) => known,
                        None => *scope.insert(self.scope(dwarf, unit, &entry, names)?),
                    };
                    if !is_inlined {
                        self.scopes[index].clear();
                    }
                    if self.scopes[index].len() == DEEPEST {
                        return Err(format!("more than {DEEPEST} functions are inlined into each other"));
                    }
                    self.scopes[index].push(entry_scope);
                }
            }
        }
        Ok(())
    }

    fn scope<'a>(
        &mut self,
        dwarf: &Dwarf<'a>,
        unit: &Unit<'a>,
        entry: &Entry<'a>,
        names: &mut Names<'_, 'a>,
    ) -> Result<Scope, String> {
        let number = |name| entry.attr_value(name).and_then(|value: Value| value.udata_value()).unwrap_or(0);
        let file = match entry.attr_value(constants::DW_AT_call_file) {
            Some(AttributeValue::FileIndex(file)) => self.file_number(dwarf, unit, file)?,
            _ => self.text_number(String::new())?,
        };
        let (line, column) = (number(constants::DW_AT_call_line), number(constants::DW_AT_call_column));
        let function = self.text_number(names.name(unit, entry)?)?;
        Ok(Scope { function, call: Place { file, line, column } })
    }

    fn tell(mut self, asked: &[u64], symbols: &[Symbol], output: &mut Output<impl Write>) -> Result<(), String> {
        let unknown = self.text_number(String::new())?;
        let mut numbers = Numbers::new();
        for address in asked {
            let index = self.addresses.partition_point(|other| other < address);
            let mut place = self.places[index].unwrap_or(Place { file: unknown, ..Place::default() });
            let mut scopes = std::mem::take(&mut self.scopes[index]);
            if scopes.is_empty() {
                scopes.push(Scope { function: unknown, call: Place::default() });
            }
            if let Some(symbol) = symbol_at(symbols, *address) {
                scopes[0].function = self.text_number(name(symbol.name)?)?;
            }
            let mut frames = Vec::with_capacity(scopes.len());
            for scope in scopes.iter().rev() {
                let (number, is_new) = numbers.number(&(scope.function, place.file, place.line, place.column), 0)?;
                if is_new {
                    let [function, file] = [scope.function, place.file].map(|text| &self.by_number[text as usize]);
                    output.line(&Told::Frame(function, file, place.line, place.column))?;
                }
                frames.push(number);
                place = scope.call;
            }
            output.line(&Told::Frames(frames))?;
            self.scopes[index] = scopes;
        }
        Ok(())
    }
}

/// The names of functions.
struct Names<'a, 'data> {
    dwarf: &'a Dwarf<'data>,
    headers: Vec<UnitHeader<Bytes<'data>>>,
    /// The units by their number in `headers`.
    units: HashMap<usize, Rc<Unit<'data>>>,
    /// The names by the offset of an entry.
    known: HashMap<usize, String>,
}

impl<'a, 'data> Names<'a, 'data> {
    fn new(dwarf: &'a Dwarf<'data>) -> Result<Names<'a, 'data>, String> {
        let headers = dwarf.units().collect::<Result<_, _>>().map_err(said)?;
        Ok(Names { dwarf, headers, units: HashMap::new(), known: HashMap::new() })
    }

    /// Return the name of an entry, as the linker knows it, or as the source has it; empty if there is none.
    fn name(&mut self, unit: &Unit<'data>, entry: &Entry<'data>) -> Result<String, String> {
        let (own, is_last) = self.own(unit, entry)?;
        match origin(unit, entry).filter(|_| !is_last) {
            None => Ok(own),
            Some(offset) => {
                if !self.known.contains_key(&offset) {
                    if self.known.len() == NAMES_KEPT {
                        self.known.clear();
                    }
                    let name = self.of_origin(offset)?;
                    self.known.insert(offset, name);
                }
                Ok(match self.known[&offset].as_str() {
                    "" => own,
                    found => found.into(),
                })
            }
        }
    }

    fn of_origin(&mut self, mut offset: usize) -> Result<String, String> {
        let mut name = String::new();
        for _ in 0..MOST_HOPS {
            let Some((unit, entry)) = self.entry(offset)? else { break };
            let (own_name, is_last) = self.own(&unit, &entry)?;
            if is_last || name.is_empty() {
                name = own_name;
            }
            match origin(&unit, &entry).filter(|_| !is_last) {
                Some(next) => offset = next,
                None => break,
            }
        }
        Ok(name)
    }

    /// Return the name that an entry has itself, and whether the linker has it: then it is the one.
    fn own(&self, unit: &Unit<'data>, entry: &Entry<'data>) -> Result<(String, bool), String> {
        let named = |kind| entry.attr_value(kind).map(|value| self.dwarf.attr_string(unit, value));
        let linked = named(constants::DW_AT_linkage_name).or_else(|| named(constants::DW_AT_MIPS_linkage_name));
        let is_last = linked.is_some();
        let name = linked.or_else(|| named(constants::DW_AT_name)).transpose().map_err(said)?;
        Ok((name.map_or(Ok(String::new()), text)?, is_last))
    }

    fn entry(&mut self, offset: usize) -> Result<Option<(Rc<Unit<'data>>, Entry<'data>)>, String> {
        let place = |header: &UnitHeader<Bytes>| header.debug_info_offset().map_or(usize::MAX, |offset| offset.0);
        let Some(number) = self.headers.partition_point(|header| place(header) <= offset).checked_sub(1) else {
            return Ok(None);
        };
        let unit = match self.units.get(&number) {
            Some(known) => known.clone(),
            None => {
                if self.units.len() == UNITS_KEPT {
                    self.units.clear();
                }
                let unit = Rc::new(self.dwarf.unit(self.headers[number]).map_err(said)?);
                self.units.insert(number, unit.clone());
                unit
            }
        };
        let Some(inside) = DebugInfoOffset(offset).to_unit_offset(&unit.header) else { return Ok(None) };
        let entry = unit.entry(inside).map_err(said)?;
        Ok(Some((unit, entry)))
    }
}

/// Return the offset of the entry that declares this one, or of which this one is an instance.
fn origin(unit: &Unit, entry: &Entry) -> Option<usize> {
    let origin = entry.attr_value(constants::DW_AT_abstract_origin);
    match origin.or_else(|| entry.attr_value(constants::DW_AT_specification))? {
        AttributeValue::UnitRef(inside) => inside.to_debug_info_offset(&unit.header).map(|offset| offset.0),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    }
}

struct Symbol<'data> {
    address: u64,
    size: u64,
    name: &'data [u8],
}

/// Return the symbols of what is loaded, in the order of addresses; of several at one address the last of the largest,
/// as LLVM does.
fn symbols<'data>(binary: &Binary<'data>) -> Result<Vec<Symbol<'data>>, String> {
    let mut symbols = Vec::new();
    let has_table = binary.elf.symbols().next().is_some();
    let table = if has_table { binary.elf.symbols() } else { binary.elf.dynamic_symbols() };
    for symbol in table {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let is_wanted = matches!(st_info & 0xf, elf::STT_NOTYPE | elf::STT_FUNC | elf::STT_OBJECT | elf::STT_GNU_IFUNC);
        let section = symbol.section_index().and_then(|index| binary.elf.section_by_index(index).ok());
        let Some(SectionFlags::Elf { sh_flags }) = section.map(|section| section.flags()) else { continue };
        if is_wanted && sh_flags & u64::from(elf::SHF_ALLOC) != 0 {
            let name = symbol.name_bytes().map_err(file::said)?;
            symbols.push(Symbol { address: symbol.address(), size: symbol.size(), name });
        }
    }
    symbols.sort_by_key(|symbol| (symbol.address, symbol.size));
    symbols.reverse();
    symbols.dedup_by_key(|symbol| symbol.address);
    symbols.reverse();
    Ok(symbols)
}

/// Return the symbol that an address is in; one without a size reaches to the next.
fn symbol_at<'a, 'data>(symbols: &'a [Symbol<'data>], address: u64) -> Option<&'a Symbol<'data>> {
    let last = symbols.partition_point(|symbol| symbol.address <= address).checked_sub(1)?;
    let symbol = &symbols[last];
    (symbol.size == 0 || address - symbol.address < symbol.size).then_some(symbol)
}
