//! The compiler of general_build: this program, called with an argument of its own. Reads what a compiler reads, writes
//! what it writes, and computes next to nothing.

use super::load::Named;
use crate::sys::Failure;
use crate::sys::file::Mapping;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The first argument; source and object follow.
pub const ARGUMENT: &str = "general-compile";

/// Where headers are looked for, in this order.
pub const PLACES: [&str; 6] = ["include/one", "include/two", "arch/include", "uapi", "generated", "include"];

/// How many there are: `h0.h`, ...
pub const HEADERS: usize = 24;

/// Larger files are mapped instead of read.
const MAPPED: u64 = 4096;

/// Return the path of this program; without /proc it can only be the guest's init.
pub fn own_path() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/init"))
}

/// Return the exit status: 0, or 1 with a message.
pub fn main(mut arguments: impl Iterator<Item = String>) -> u8 {
    let (Some(source), Some(object)) = (arguments.next(), arguments.next()) else {
        eprintln!("kdyno-agent: {ARGUMENT} needs a source and an object");
        return 1;
    };
    match compile(Path::new(&source), Path::new(&object)) {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("kdyno-agent: {source}: {failure}");
            1
        }
    }
}

fn compile(source: &Path, object: &Path) -> Result<(), Failure> {
    let mut included = BTreeSet::new();
    let mut waiting = vec![source.to_owned()];
    let mut code = Vec::new();
    while let Some(path) = waiting.pop() {
        let text = read(&path)?;
        for line in text.lines() {
            match line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"')) {
                Some(name) if included.insert(name.to_owned()) => waiting.push(find(name)?),
                Some(_) => {}
                None => code.extend(line.bytes().rev()),
            }
        }
    }
    write(object, &code)?;
    let needed: String = included.iter().map(|name| format!(" {name} \\\n")).collect();
    fs::write(object.with_extension("d"), format!("{}:{needed}", object.display())).named("write(dependencies)")
}

/// Try one place after the other, as compilers do.
fn find(name: &str) -> Result<PathBuf, Failure> {
    for place in PLACES {
        let path = Path::new(place).join(name);
        match File::open(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).named("open(header)"),
        }
    }
    Err(Failure::Errno { call: "open(header)", errno: libc::ENOENT })
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut file = File::open(path).named("open(source)")?;
    let bytes = file.metadata().named("fstat(source)")?.len();
    if bytes >= MAPPED {
        let mapping = Mapping::shared(file.as_raw_fd(), bytes as usize, libc::PROT_READ)?;
        return Ok(String::from_utf8_lossy(mapping.bytes()).into_owned());
    }
    let mut text = String::new();
    file.read_to_string(&mut text).named("read(source)")?;
    Ok(text)
}

/// Write a file beside the object, in pieces, and rename it.
fn write(object: &Path, code: &[u8]) -> Result<(), Failure> {
    let unfinished = object.with_extension("tmp");
    let mut file = BufWriter::with_capacity(2048, File::create(&unfinished).named("open(object)")?);
    for piece in code.chunks(500) {
        file.write_all(piece).named("write(object)")?;
    }
    file.flush().named("write(object)")?;
    fs::rename(unfinished, object).named("rename(object)")
}
