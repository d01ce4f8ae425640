//! The machine, the sections and the symbols.

use std::io::Write;

use object::{File, Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, SymbolFlags, SymbolSection, elf};
use serde::Serialize;

use crate::file::{Binary, said};
use crate::limits::{Steps, name};
use crate::output::Output;

/// What readelf calls the machines that Linux runs on.
const MACHINES: &[(u16, &str)] = &[
    (elf::EM_X86_64, "Advanced Micro Devices X86-64"),
    (elf::EM_386, "Intel 80386"),
    (elf::EM_AARCH64, "AArch64"),
    (elf::EM_ARM, "ARM"),
    (elf::EM_RISCV, "RISC-V"),
    (elf::EM_LOONGARCH, "LoongArch"),
    (elf::EM_PPC, "PowerPC"),
    (elf::EM_PPC64, "PowerPC64"),
    (elf::EM_S390, "IBM S/390"),
    (elf::EM_MIPS, "MIPS R3000"),
    (elf::EM_SPARC, "Sparc"),
    (elf::EM_SPARCV9, "Sparc v9"),
    (elf::EM_68K, "MC68000"),
    (elf::EM_PARISC, "HPPA"),
    (elf::EM_ALPHA, "Alpha"),
    (elf::EM_ARC_COMPACT2, "ARCv2"),
    (elf::EM_ARC_COMPACT, "ARCompact"),
    (elf::EM_CSKY, "C-SKY"),
    (elf::EM_HEXAGON, "QUALCOMM DSP6 Processor"),
    (elf::EM_MICROBLAZE, "Xilinx MicroBlaze"),
    (elf::EM_ALTERA_NIOS2, "Altera Nios II"),
    (elf::EM_OPENRISC, "OpenRISC"),
    (elf::EM_SH, "Renesas / SuperH SH"),
    (elf::EM_XTENSA, "Tensilica Xtensa Processor"),
];
/// Stands for the section of common symbols, which get their place when they are linked.
const COMMON: i64 = -1;

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    Machine(String),
    /// Its index, its name, whether the file has none of it (SHT_NOBITS), its flags (SHF_...), bytes.
    Section(usize, String, bool, u64, u64),
    /// Its name, the index of its section or COMMON, its value, bytes. Symbols without a size are left out.
    Symbol(String, i64, u64, u64),
}

pub fn tell(binary: &Binary, output: &mut Output<impl Write>) -> Result<(), String> {
    let mut steps = Steps::new();
    output.line(&Told::Machine(machine(&binary.elf)))?;
    for section in binary.elf.sections() {
        steps.take(1)?;
        let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
        let called = name(section.name_bytes().map_err(said)?)?;
        let is_empty = matches!(section.kind(), SectionKind::UninitializedData | SectionKind::UninitializedTls);
        output.line(&Told::Section(section.index().0, called, is_empty, sh_flags, section.size()))?;
    }
    for symbol in binary.elf.symbols().chain(binary.elf.dynamic_symbols()) {
        steps.take(1)?;
        let section = match symbol.section() {
            SymbolSection::Section(index) => index.0 as i64,
            SymbolSection::Common => COMMON,
            _ => continue,
        };
        let called = name(symbol.name_bytes().map_err(said)?)?;
        if symbol.size() > 0 && is_code_or_data(&symbol) && !called.is_empty() {
            output.line(&Told::Symbol(called, section, symbol.address(), symbol.size()))?;
        }
    }
    Ok(())
}

fn machine(file: &File) -> String {
    let number = match file {
        File::Elf32(file) => file.elf_header().e_machine.get(file.endian()),
        File::Elf64(file) => file.elf_header().e_machine.get(file.endian()),
        _ => elf::EM_NONE,
    };
    let known = MACHINES.iter().find(|(machine, _)| *machine == number);
    known.map_or_else(|| format!("<unknown>: {number:#x}"), |(_, called)| (*called).into())
}

fn is_code_or_data<'data>(symbol: &impl ObjectSymbol<'data>) -> bool {
    let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { return false };
    matches!(st_info & 0xf, elf::STT_NOTYPE | elf::STT_FUNC | elf::STT_OBJECT | elf::STT_GNU_IFUNC | elf::STT_TLS)
}
