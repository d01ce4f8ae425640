//! Untrusted files: whatever they hold, they are read, or refused in one line.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use object::{Object, ObjectSymbol};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::file::Binary;
use crate::output::Output;
use crate::{elf, frames, lines, units};

/// Functions inlined into each other, in two ranges of addresses.
const SOURCE: &str = "\
static inline __attribute__((always_inline)) int deep(int x) { return x * 7 + 3; }
static inline __attribute__((always_inline)) int middle(int x) { return deep(x) ^ deep(x + 1); }
__attribute__((section(\".text.far\"))) int far(int x) { return x ? middle(x) : deep(x); }
int _start(void) { return middle(5) + far(6); }
";

/// Return programs with debug information of two versions.
fn programs() -> &'static [Vec<u8>] {
    static CONTENT: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let compile = |version: &str| {
        let made = std::env::temp_dir().join(format!("kdyno-debuginfo-{}{version}", std::process::id()));
        let source = made.with_extension("c");
        fs::write(&source, SOURCE).unwrap();
        let words = ["-O2", "-g", version, "-static", "-nostdlib", "-no-pie", "-o"];
        let done = Command::new("gcc").args(words).arg(&made).arg(&source).status().unwrap();
        assert!(done.success());
        let content = fs::read(&made).unwrap();
        [made, source].into_iter().for_each(|file| fs::remove_file(file).unwrap());
        content
    };
    CONTENT.get_or_init(|| ["-gdwarf-4", "-gdwarf-5"].map(compile).into())
}

type Verb = fn(&Binary, &[u64], &mut Output<&mut Vec<u8>>) -> Result<(), String>;

/// Return what every verb prints; None where it refuses the file.
fn told(content: &[u8], addresses: &[u64]) -> [Result<String, String>; 4] {
    let all: [Verb; 4] = [
        |binary, _, output| elf::tell(binary, output),
        |binary, _, output| units::tell(binary, output),
        |binary, _, output| lines::tell(binary, output),
        |binary, addresses, output| frames::tell(binary, addresses, output),
    ];
    all.map(|tell| {
        let mut bytes = Vec::new();
        tell(&Binary::parse(content)?, addresses, &mut Output::new(&mut bytes))?;
        Ok(String::from_utf8(bytes).unwrap())
    })
}

/// Return the addresses of all bytes of a program's functions.
fn code(content: &[u8]) -> Vec<u64> {
    let binary = Binary::parse(content).unwrap();
    let sized = binary.elf.symbols().filter(|symbol| symbol.size() > 0);
    sized.flat_map(|symbol| symbol.address()..symbol.address() + symbol.size()).collect()
}

/// Return programs with some bytes changed, most in the debug information, and perhaps the end cut off.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff])];
    let changes = vec((any::<prop::sample::Index>(), byte), 0..8);
    (prop::sample::select(programs()), changes, any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut content, changes, cut, chance)| {
            let start = if chance.is_multiple_of(3) { 0 } else { content.len() / 3 };
            let length = content.len() - start;
            changes.into_iter().for_each(|(place, byte)| content[start + place.index(length)] = byte);
            if chance.is_multiple_of(8) {
                content.truncate(cut.index(content.len()));
            }
            content
        },
    )
}

proptest! {
    #[test]
    fn any_file_is_read_or_refused(content in prop_oneof![4 => damaged(), 1 => vec(any::<u8>(), 0..300)]) {
        let addresses = [0, 0x40_1000, 0x40_1004, 0x40_1010, u64::MAX];
        for why in told(&content, &addresses).into_iter().filter_map(Result::err) {
            prop_assert!(!why.is_empty() && !why.contains('\n'), "{}", why);
        }
    }
}

#[test]
fn an_address_has_the_functions_that_are_inlined_there() {
    for content in programs() {
        let [_, units, lines, frames] = told(content, &code(content)).map(Result::unwrap);
        assert_eq!(units.lines().count(), 1);
        assert!(lines.contains("\"pieces\""));
        for function in ["deep", "middle", "far", "_start"] {
            assert!(frames.contains(&format!("[\"{function}\",")), "{function} is in no frame of {frames}");
        }
        let deepest =
            frames.lines().filter(|line| line.starts_with("{\"frames\"")).map(|line| line.matches(',').count());
        assert_eq!(deepest.max(), Some(2), "deep in middle in far: {frames}");
    }
}

#[test]
fn an_address_that_nothing_is_known_of_has_one_empty_frame() {
    let [.., frames] = told(&programs()[0], &[0, 1]).map(Result::unwrap);
    assert_eq!(frames, "{\"frame\":[\"\",\"\",0,0]}\n{\"frames\":[0]}\n{\"frames\":[0]}\n");
}

#[test]
fn what_is_not_linked_has_no_addresses() {
    let mut content = programs()[0].clone();
    content[16] = 1; // e_type: ET_REL
    let [sections, .., frames] = told(&content, &[]);
    assert!(sections.is_ok());
    assert_eq!(frames.unwrap_err(), "it is an object file, and isn't linked yet");
}
