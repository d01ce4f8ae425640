//! The order of functions that a file gives: one function a line, as `ld.lld --symbol-ordering-file` takes it.

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
}

impl Listed {
    /// Read the file; returns why that can't be. The name of the file gets into a comment and must be a plain one.
    pub fn read(path: &Path) -> Result<Self, String> {
        let file = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if file.is_empty() || !file.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
            return Err(format!("the order {} must have a name of letters, digits, `-` and `.`", path.display()));
        }
        let text = fs::read(path).map_err(|error| format!("can't read the order {}: {error}", path.display()))?;
        let functions = functions(&text);
        if functions.is_empty() {
            return Err(format!("the order {} names no function", path.display()));
        }
        Ok(Self { file: file.to_owned(), functions })
    }
}

/// What the lines name; `#` starts a comment. Names are only looked up, and need no check: one that no object has is
/// none of a function.
fn functions(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let names = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut seen = HashSet::new();
    names.filter(|name| !name.is_empty() && seen.insert(*name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_function_and_the_first_of_several_counts() {
        let text = b"# hot first\nvfs_read\r\n\n  do_exit.part.0\t# 12 %\nvfs_read\nvfs_read.cold\n*) evil\n\xff\n";
        assert_eq!(functions(text), ["vfs_read", "do_exit.part.0", "vfs_read.cold", "*) evil", "\u{fffd}"]);
    }

    #[test]
    fn a_long_order_is_read_whole() {
        let text: String = (0..200_000).map(|number| format!("f{number}\n")).collect();
        let functions = functions(text.as_bytes());
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
