//! What a call of the linker is about.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Options whose value is an ELF file that isn't linked; compilers pass them to their linker.
const FILES: [&str; 3] = ["-plugin", "-dynamic-linker", "--dynamic-linker"];

/// The last link of a kernel, as far as `lkd` has to understand it.
#[derive(Debug, PartialEq)]
pub struct KernelLink {
    pub script: PathBuf,
    /// The argument that holds the script, and what stands before the path in it: `--script=`, `-T` or nothing.
    argument: (OsString, &'static str),
    pub output: PathBuf,
    /// Every argument that may be a file to link; values of options are among them, and aren't ELF files.
    pub candidates: Vec<PathBuf>,
}

impl KernelLink {
    /// Return the call as a kernel's last link; `None` if it is any other (`ld -r`, a vDSO, the boot code,
    /// `--version`).
    pub fn read(arguments: &[OsString]) -> Option<Self> {
        let (index, prefix, script) = find_script(arguments)?;
        let output = arguments.iter().position(|word| word == "-o").and_then(|at| arguments.get(at + 1));
        let output = PathBuf::from(output.map_or(OsStr::new("a.out"), |word| word.as_os_str()));
        let is_of_option = |at: usize| at.checked_sub(1).is_some_and(|at| FILES.contains(&&*text(&arguments[at])));
        let candidates = arguments
            .iter()
            .enumerate()
            .filter(|(at, word)| *at != index && !text(word).starts_with('-') && Path::new(word) != output)
            .filter(|(at, _)| !is_of_option(*at))
            .map(|(_, word)| PathBuf::from(word))
            .collect();
        Some(Self { script, argument: (arguments[index].clone(), prefix), output, candidates })
    }

    pub fn is_candidate(&self, path: &Path) -> bool {
        self.candidates.iter().any(|candidate| candidate == path)
    }

    /// Return the same words with another script.
    pub fn with_script(&self, arguments: &[OsString], script: &Path) -> Vec<OsString> {
        let (own, prefix) = &self.argument;
        let mut other = OsString::from(prefix);
        other.push(script);
        arguments.iter().map(|word| if word == own { other.clone() } else { word.clone() }).collect()
    }
}

/// Find `-T FILE`, `-TFILE`, `--script FILE` or `--script=FILE` where the file is `arch/<arch>/kernel/vmlinux.lds`; the
/// boot code's own `arch/x86/boot/compressed/vmlinux.lds` is another matter.
fn find_script(arguments: &[OsString]) -> Option<(usize, &'static str, PathBuf)> {
    arguments.iter().enumerate().find_map(|(index, word)| {
        let before = index.checked_sub(1).map(|at| text(&arguments[at]));
        let word = text(word);
        let (prefix, path) = if let Some(path) = word.strip_prefix("--script=") {
            ("--script=", path)
        } else if let Some(path) = word.strip_prefix("-T") {
            ("-T", path)
        } else if matches!(before.as_deref(), Some("-T" | "--script")) {
            ("", word.as_ref())
        } else {
            return None;
        };
        is_of_the_kernel(path).then(|| (index, prefix, PathBuf::from(path)))
    })
}

fn is_of_the_kernel(path: &str) -> bool {
    let parts: Vec<&str> = path.rsplit('/').take(4).collect();
    matches!(parts[..], ["vmlinux.lds", "kernel", _, "arch"])
}

fn text(word: &OsStr) -> std::borrow::Cow<'_, str> {
    word.to_string_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn script_of(line: &str) -> Option<String> {
        KernelLink::read(&words(line)).map(|link| link.script.to_string_lossy().into_owned())
    }

    #[test]
    fn the_kernels_script_is_found_however_it_is_written() {
        for spelled in ["-T ./arch/x86/kernel/vmlinux.lds", "-T./arch/x86/kernel/vmlinux.lds"] {
            assert_eq!(script_of(&format!("-m elf_x86_64 {spelled} -o v")).unwrap(), "./arch/x86/kernel/vmlinux.lds");
        }
        for spelled in ["--script=arch/x86/kernel/vmlinux.lds", "--script arch/x86/kernel/vmlinux.lds"] {
            assert_eq!(script_of(&format!("-o v {spelled} a.o")).unwrap(), "arch/x86/kernel/vmlinux.lds");
        }
    }

    #[test]
    fn every_other_call_is_none_of_its_business() {
        for line in [
            "-m elf_x86_64 -r -o kernel/built-in.o kernel/fork.o",
            "-T arch/x86/boot/compressed/vmlinux.lds -o arch/x86/boot/compressed/vmlinux head_64.o",
            "-shared -T arch/x86/entry/vdso/vdso.lds -o vdso64.so.dbg note.o",
            "-Ttext 0x7c00 -o boot boot.o",
            "--version",
            "",
        ] {
            assert_eq!(KernelLink::read(&words(line)), None, "{line}");
        }
    }

    #[test]
    fn only_the_script_of_a_call_changes() {
        for (line, changed) in [
            ("-T arch/x86/kernel/vmlinux.lds -o v a.a", "-T new.lds -o v a.a"),
            ("--script=arch/x86/kernel/vmlinux.lds -o v a.a", "--script=new.lds -o v a.a"),
        ] {
            let link = KernelLink::read(&words(line)).unwrap();
            assert_eq!(link.with_script(&words(line), Path::new("new.lds")), words(changed));
        }
    }

    #[test]
    fn what_a_compiler_tells_its_linker_about_files_of_its_own_is_no_file_to_link() {
        let line = "-plugin lto.so -dynamic-linker ld.so --script=./arch/um/kernel/vmlinux.lds -o v crt1.o a.a -lc";
        let link = KernelLink::read(&words(line)).unwrap();
        assert_eq!(link.candidates, [Path::new("crt1.o"), Path::new("a.a")]);
    }

    #[test]
    fn neither_options_nor_the_script_nor_the_output_are_files_to_link() {
        let link = KernelLink::read(&words("-z noexecstack -T arch/x86/kernel/vmlinux.lds -o v a.a -L. b.o")).unwrap();
        assert_eq!(link.output, Path::new("v"));
        let names: Vec<_> = link.candidates.iter().map(|path| path.to_string_lossy()).collect();
        assert_eq!(names, ["noexecstack", "-T", "a.a", "b.o"].into_iter().filter(|w| *w != "-T").collect::<Vec<_>>());
    }
}
