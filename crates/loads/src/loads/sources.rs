//! A library of small C files is written: something to compile that is the same everywhere.
//!
//! Every statement is one of a few kinds, of which Rust knows the meaning, too. So the program that comes with the library
//! can say whether it was compiled rightly.

use crate::clock::time_work;
use crate::failure::{self, Failure};
use crate::load::{Load, Program, any_values};
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{Kind, Parameters, Setting};
use crate::scramble::scramble;
use nix::errno::Errno;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::PathBuf;

pub const SOURCES: Program = Program {
    name: "sources",
    summary: "writes a library of --count C files, with a Makefile, into a new directory, and leaves it there; seconds",
    settings: &[
        Setting { name: "directory", kind: Kind::Text, default: None },
        Setting { name: "count", kind: Kind::Number { least: 1, most: 10_000 }, default: Some("200") },
    ],
    check: any_values,
    prepare,
};

/// The number of functions of a file.
const FUNCTIONS: u64 = 2;
/// The number of statements of a function.
const STATEMENTS: u64 = 10;
/// Numbers in a file's table.
const TABLE: u64 = 16;
/// What the check begins with.
const START: u64 = 1;

/// One statement on x, of 64 bits.
#[derive(Clone, Copy, Debug)]
enum Statement {
    Multiply(u64),
    Mix(u32),
    Either { bit: u32, added: u64, mixed: u64 },
    Repeat { times: u32, added: u64 },
    LookUp,
    Switch([u64; 4]),
    Digits,
}

struct Part {
    number: u64,
    table: Vec<u64>,
    functions: Vec<Vec<Statement>>,
}

struct Sources {
    directory: PathBuf,
    files: Vec<(String, String)>,
    checksum: u64,
}

/// The numbers of one file, in the order in which they are taken.
struct Numbers {
    next: u64,
}

impl Numbers {
    fn take(&mut self) -> u64 {
        self.next += 1;
        scramble(self.next)
    }

    fn number_below(&mut self, limit: u64) -> u64 {
        self.take() % limit
    }
}

impl Statement {
    fn draw(numbers: &mut Numbers) -> Statement {
        match numbers.number_below(7) {
            0 => Statement::Multiply(numbers.take() | 1),
            1 => Statement::Mix(1 + numbers.number_below(63) as u32),
            2 => {
                Statement::Either { bit: numbers.number_below(64) as u32, added: numbers.take(), mixed: numbers.take() }
            }
            3 => Statement::Repeat { times: 2 + numbers.number_below(6) as u32, added: numbers.take() },
            4 => Statement::LookUp,
            5 => Statement::Switch([numbers.take(), numbers.take(), numbers.take(), numbers.take()]),
            _ => Statement::Digits,
        }
    }

    fn apply(self, x: u64, table: &[u64]) -> u64 {
        match self {
            Statement::Multiply(factor) => x.wrapping_mul(factor),
            Statement::Mix(shift) => x ^ (x >> shift),
            Statement::Either { bit, added, mixed } => match x >> bit & 1 {
                1 => x.wrapping_add(added),
                _ => x ^ mixed,
            },
            Statement::Repeat { times, added } => (0..times).fold(x, |x, _| x.rotate_left(7).wrapping_add(added)),
            Statement::LookUp => x.wrapping_add(table[(x % TABLE) as usize]),
            Statement::Switch([first, second, third, fourth]) => match x & 3 {
                0 => x.wrapping_add(first),
                1 => x ^ second,
                2 => x.wrapping_sub(third),
                _ => x.wrapping_mul(fourth | 1),
            },
            Statement::Digits => x.wrapping_add(format!("{x:x}").len() as u64),
        }
    }

    fn text(self) -> String {
        match self {
            Statement::Multiply(factor) => format!("x *= {factor:#x}u;"),
            Statement::Mix(shift) => format!("x ^= x >> {shift};"),
            Statement::Either { bit, added, mixed } => {
                format!("if (x >> {bit} & 1)\n\t\tx += {added:#x}u;\n\telse\n\t\tx ^= {mixed:#x}u;")
            }
            Statement::Repeat { times, added } => {
                format!("for (int i = 0; i < {times}; i++)\n\t\tx = (x << 7 | x >> 57) + {added:#x}u;")
            }
            Statement::LookUp => format!("x += table[x % {TABLE}];"),
            Statement::Switch([first, second, third, fourth]) => format!(
                "switch (x & 3) {{\n\tcase 0:\n\t\tx += {first:#x}u;\n\t\tbreak;\n\tcase 1:\n\t\tx ^= {second:#x}u;\n\t\tbreak;\n\t\
                 case 2:\n\t\tx -= {third:#x}u;\n\t\tbreak;\n\tdefault:\n\t\tx *= {:#x}u;\n\t}}",
                fourth | 1
            ),
            Statement::Digits => "snprintf(text, sizeof(text), \"%\" PRIx64, x);\n\tx += strlen(text);".into(),
        }
    }
}

impl Part {
    fn new(number: u64) -> Part {
        let mut numbers = Numbers { next: number << 32 };
        let table = (0..TABLE).map(|_| numbers.take()).collect();
        let mut function = || (0..STATEMENTS).map(|_| Statement::draw(&mut numbers)).collect();
        Part { number, table, functions: (0..FUNCTIONS).map(|_| function()).collect() }
    }

    fn apply(&self, x: u64) -> u64 {
        let statements = self.functions.iter().flatten();
        statements.fold(Statement::LookUp.apply(x, &self.table), |x, statement| statement.apply(x, &self.table))
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "#include <inttypes.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n\
             #include \"parts.h\"\n\n",
        );
        let _ = writeln!(text, "static const uint64_t table[{TABLE}] = {{");
        for value in &self.table {
            let _ = writeln!(text, "\t{value:#x}u,");
        }
        text += "};\n";
        for (place, statements) in self.functions.iter().enumerate() {
            let _ = writeln!(text, "\nstatic uint64_t step_{place}(uint64_t x)\n{{");
            if statements.iter().any(|statement| matches!(statement, Statement::Digits)) {
                text += "\tchar text[32];\n\n";
            }
            for statement in statements {
                let _ = writeln!(text, "\t{}", statement.text());
            }
            text += "\treturn x;\n}\n";
        }
        let _ = writeln!(text, "\nuint64_t part_{}(uint64_t x)\n{{", self.number);
        // Every part uses its table: a compiler warns of one that nobody does.
        let _ = writeln!(text, "\t{}", Statement::LookUp.text());
        for place in 0..self.functions.len() {
            let _ = writeln!(text, "\tx = step_{place}(x);");
        }
        text + "\treturn x;\n}\n"
    }
}

/// Return all files of a library by name, and what its check gives.
fn library(count: u64) -> (Vec<(String, String)>, u64) {
    let parts: Vec<Part> = (0..count).map(Part::new).collect();
    let checksum = parts.iter().fold(START, |x, part| part.apply(x));
    let mut files: Vec<(String, String)> =
        parts.iter().map(|part| (format!("part{}.c", part.number), part.text())).collect();
    files.push(("parts.h".into(), header(count)));
    files.push(("check.c".into(), check(count, checksum)));
    files.push(("Makefile".into(), makefile(count)));
    (files, checksum)
}

fn header(count: u64) -> String {
    let mut text = String::from("#ifndef PARTS_H\n#define PARTS_H\n\n#include <stdint.h>\n\n");
    for number in 0..count {
        let _ = writeln!(text, "uint64_t part_{number}(uint64_t x);");
    }
    text + "\n#endif\n"
}

fn check(count: u64, checksum: u64) -> String {
    let mut text = format!(
        "#include <inttypes.h>\n#include <stdio.h>\n\n#include \"parts.h\"\n\nint main(void)\n{{\n\tuint64_t x = {START};\n\n"
    );
    for number in 0..count {
        let _ = writeln!(text, "\tx = part_{number}(x);");
    }
    text += "\tprintf(\"%016\" PRIx64 \"\\n\", x);\n";
    text + &format!("\treturn x != {checksum:#x}u;\n}}\n")
}

fn makefile(count: u64) -> String {
    let objects: String = (0..count).map(|number| format!(" part{number}.o")).collect();
    format!(
        "# libparts.a: the library. check: a program that says whether it computes what it should.\n\
         CC = gcc\nCFLAGS = -O2 -Wall -Wextra -Werror\nobjects ={objects}\n\n\
         libparts.a: $(objects)\n\trm -f $@\n\t$(AR) rc $@ $(objects)\n\n\
         %.o: %.c parts.h\n\t$(CC) $(CFLAGS) $(PIPE) -c -o $@ $<\n\n\
         check: check.c parts.h libparts.a\n\t$(CC) $(CFLAGS) $(PIPE) -o $@ check.c libparts.a\n\n\
         clean:\n\trm -f $(objects) libparts.a check\n\n.PHONY: clean\n"
    )
}

fn prepare(parameters: &Parameters) -> Result<Box<dyn Load>, Failure> {
    let (files, checksum) = library(parameters.number("count") as u64);
    Ok(Box::new(Sources { directory: parameters.text_of("directory").into(), files, checksum }))
}

impl Sources {
    fn refused(&self, error: &io::Error) -> Failure {
        let path = self.directory.display();
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EEXIST) => Failure::of_usage(
                format!("{path} exists already"),
                "name a directory that does not exist: the load makes it",
            ),
            _ => failure::io_failure(&format!("make the directory {path}"), error),
        }
    }

    fn write(&self) -> io::Result<()> {
        self.files.iter().try_for_each(|(name, text)| fs::write(self.directory.join(name), text))
    }
}

impl Load for Sources {
    fn reset(&mut self) {
        for (name, _) in &self.files {
            let _ = fs::remove_file(self.directory.join(name));
        }
        let _ = fs::remove_dir(&self.directory);
    }

    fn run(&mut self) -> Result<Repetition, Failure> {
        fs::create_dir(&self.directory).map_err(|error| self.refused(&error))?;
        let (result, timing) = time_work(|| self.write());
        result.map_err(|error| failure::io_failure(&format!("write into {}", self.directory.display()), &error))?;
        Ok(Repetition { readings: vec![Reading::seconds(&timing)], timing })
    }

    fn verify(&mut self) -> Result<Facts, Failure> {
        for (name, text) in &self.files {
            let path = self.directory.join(name);
            let read =
                fs::read(&path).map_err(|error| failure::io_failure(&format!("read {}", path.display()), &error))?;
            if read != text.as_bytes() {
                return Err(failure::wrong_result(format!("{} is not what was written", path.display())));
            }
        }
        let bytes: usize = self.files.iter().map(|(_, text)| text.len()).sum();
        Ok(Facts::from_iter([
            ("bytes".into(), bytes.into()),
            // What `check` prints.
            ("checksum".into(), format!("{:016x}", self.checksum).into()),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::test::outcome;

    fn directory(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("kdyno-loads-sources-{name}.{}", std::process::id()))
    }

    #[test]
    fn the_library_is_the_same_wherever_it_is_written() {
        let (files, checksum) = library(200);
        let sum = files.iter().flat_map(|(name, text)| name.bytes().chain(text.bytes()));
        let sum = sum.fold(0u64, |sum, byte| scramble(sum ^ u64::from(byte)));
        assert_eq!((files.len(), checksum, sum), (203, 0xc739_8ff4_f52a_8567, 0x6df4_1810_fe7f_a52d));
    }

    #[test]
    fn files_are_written_again_in_each_repetition_and_left_there() {
        let path = directory("kept");
        let outcome = outcome(&format!("sources --directory {} --count 3 --repeat 2", path.display())).unwrap();
        let (files, checksum) = library(3);
        assert_eq!(outcome["facts"]["checksum"], format!("{checksum:016x}"));
        assert!(files.iter().all(|(name, text)| fs::read_to_string(path.join(name)).unwrap() == *text));
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_directory_that_is_there_is_left_alone() {
        let path = directory("mine");
        fs::create_dir(&path).unwrap();
        let failure = outcome(&format!("sources --directory {}", path.display())).unwrap_err();
        assert_eq!((failure.exit_code, fs::read_dir(&path).unwrap().count()), (64, 0));
        fs::remove_dir(&path).unwrap();
    }

    #[test]
    fn a_file_that_differs_is_found() {
        let path = directory("changed");
        let (files, checksum) = library(2);
        let mut sources = Sources { directory: path.clone(), files, checksum };
        sources.run().unwrap();
        assert!(sources.verify().is_ok());
        fs::write(path.join("part1.c"), "int x;\n").unwrap();
        assert!(sources.verify().unwrap_err().to_string().contains("part1.c is not what was written"));
        fs::remove_dir_all(&path).unwrap();
    }
}
