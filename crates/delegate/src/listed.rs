//! The order of functions that a file gives: one function a line, as `ld.lld --symbol-ordering-file` takes it.
//!
//! Comments that begin with `#:` say where the next function goes, or what follows the last one: `#: align N` at a
//! multiple of N bytes, `#: at N` so many bytes behind the first function, if there is room. Other linkers pass them
//! over.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// An order that was read: the functions that come first.
#[derive(Debug, PartialEq)]
pub struct Listed {
    /// The file's name, which kdyno makes of its content.
    pub file: String,
    /// Symbols, each once, where it came first.
    pub functions: Vec<String>,
    /// What is asked of the place of each of them, and of what comes behind the last one.
    pub gaps: Vec<Gap>,
}

/// Where something begins; both are None where the linker decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gap {
    pub align: Option<u64>,
    /// Behind the first function.
    pub at: Option<u64>,
}

/// A page of the largest kind is 1 GB; no gap in a kernel's text is near that.
const MOST: u64 = 1 << 24;

impl Listed {
    /// Read the file; returns why that can't be. The name of the file gets into a comment and must be a plain one.
    pub fn read(path: &Path) -> Result<Self, String> {
        let file = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if file.is_empty() || !file.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
            return Err(format!("the order {} must have a name of letters, digits, `-` and `.`", path.display()));
        }
        let text = fs::read(path).map_err(|error| format!("can't read the order {}: {error}", path.display()))?;
        let (functions, gaps) = functions(&text).map_err(|why| format!("the order {}: {why}", path.display()))?;
        if functions.is_empty() {
            return Err(format!("the order {} names no function", path.display()));
        }
        Ok(Self { file: file.to_owned(), functions, gaps })
    }
}

/// Return the names in the lines; `#` starts a comment. Names are only looked up, and need no check: one that no object
/// has is not the name of a function.
fn functions(text: &[u8]) -> Result<(Vec<String>, Vec<Gap>), String> {
    let text = String::from_utf8_lossy(text);
    let (mut functions, mut gaps, mut earlier_names) = (Vec::new(), vec![Gap::default()], HashSet::new());
    for line in text.lines() {
        let (name, comment) = line.split_once('#').unwrap_or((line, ""));
        let name = name.trim();
        if let Some(asked) = comment.strip_prefix(':').filter(|_| name.is_empty()) {
            leave(asked, &mut gaps)?;
        } else if !name.is_empty() && earlier_names.insert(name.to_owned()) {
            functions.push(name.to_owned());
            gaps.push(Gap::default());
        }
    }
    Ok((functions, gaps))
}

/// Add what a comment asks for to the latest gap.
fn leave(asked: &str, gaps: &mut [Gap]) -> Result<(), String> {
    let unknown = || format!("`#:{asked}` is neither `#: align N` nor `#: at N`, with N up to {MOST}");
    let (what, number) = asked.trim().split_once(' ').ok_or_else(unknown)?;
    let number = number.parse().ok().filter(|number: &u64| *number <= MOST).ok_or_else(unknown)?;
    if let Some(gap) = gaps.last_mut() {
        match what {
            "align" if number.is_power_of_two() => gap.align = Some(number),
            "at" => gap.at = Some(number),
            _ => return Err(unknown()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_function_and_the_first_of_several_counts() {
        let text = b"# hot first\nvfs_read\r\n\n  do_exit.part.0\t# 12 %\nvfs_read\nvfs_read.cold\n*) evil\n\xff\n";
        let (functions, gaps) = functions(text).unwrap();
        assert_eq!(functions, ["vfs_read", "do_exit.part.0", "vfs_read.cold", "*) evil", "\u{fffd}"]);
        assert_eq!(gaps, [Gap::default(); 6]);
    }

    #[test]
    fn gaps_are_before_the_next_function_or_behind_the_last() {
        let (functions, gaps) = functions(b"#: align 4096\na\n#: at 48\nb\nc\n#:at 0\n").unwrap();
        let align = |align| Gap { align: Some(align), at: None };
        let at = |at| Gap { align: None, at: Some(at) };
        assert_eq!((functions.len(), gaps), (3, vec![align(4096), at(48), Gap::default(), at(0)]));
    }

    #[test]
    fn a_gap_that_is_none_is_refused() {
        for line in ["#: align 3", "#: align", "#: at x", "#: at -1", "#: at 99999999", "#: jump 16", "#:"] {
            assert!(functions(line.as_bytes()).unwrap_err().contains("neither"), "{line}");
        }
    }

    #[test]
    fn a_long_order_is_read_whole() {
        let text: String = (0..200_000).map(|number| format!("f{number}\n")).collect();
        let functions = functions(text.as_bytes()).unwrap().0;
        assert_eq!((functions.len(), functions[199_999].as_str()), (200_000, "f199999"));
    }

    #[test]
    fn a_file_without_functions_or_with_an_odd_name_is_refused() {
        let directory = std::env::temp_dir().join(format!("lkd-listed-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let write = |name: &str, text: &str| {
            fs::write(directory.join(name), text).unwrap();
            Listed::read(&directory.join(name))
        };
        assert!(write("order-1", "# nothing\n\n").unwrap_err().ends_with("order-1 names no function"));
        assert!(write("order-2", "").unwrap_err().contains("names no function"));
        assert!(write("a b )", "f").is_err_and(|why| why.contains("must have a name of letters")));
        assert!(Listed::read(&directory.join("order-3")).unwrap_err().contains("No such file"));
        assert_eq!(write("order-4", "f\ng").unwrap().functions, ["f", "g"]);
        fs::remove_dir_all(&directory).unwrap();
    }
}
