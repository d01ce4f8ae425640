//! Response files: words of a command line that come from a file, `@file`, as GCC and clang read and write them.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A file may name others; one that names itself must come to an end.
const DEEPEST: usize = 16;

/// Replace response files by their words. What can't be read as one stays a word, as the compilers have it; devices and
/// pipes aren't opened.
pub fn expanded(words: &[OsString]) -> Vec<OsString> {
    let mut all = Vec::with_capacity(words.len());
    expand(words, 0, &mut all);
    all
}

fn expand(words: &[OsString], depth: usize, all: &mut Vec<OsString>) {
    for word in words {
        let named = word.as_bytes().strip_prefix(b"@").map(|name| OsString::from_vec(name.to_vec()));
        let content =
            named.filter(|name| depth < DEEPEST && Path::new(name).is_file()).and_then(|name| std::fs::read(name).ok());
        match content {
            Some(content) => expand(&split(&content), depth + 1, all),
            None => all.push(word.clone()),
        }
    }
}

/// Split a text into words by white space; quotes of both kinds hold them together, and a backslash takes the next byte
/// as it is (GCC's manual, "Overall Options", @file).
pub fn split(content: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = content.iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (_, b'\\') => word.get_or_insert_default().extend(bytes.next()),
            (None, b'\'' | b'"') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (Some(open), _) if byte == open => quote = None,
            (None, byte) if byte.is_ascii_whitespace() || byte == 0x0b => words.extend(word.take()),
            (_, byte) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

/// Return the words as the content of a response file.
pub fn joined(words: &[OsString]) -> Vec<u8> {
    let mut content = Vec::new();
    for word in words {
        content.push(b'"');
        for byte in word.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                content.push(b'\\');
            }
            content.push(*byte);
        }
        content.extend(b"\"\n");
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_response_file_are_what_was_written_into_it() {
        let words: Vec<OsString> = ["a b", "", "c\"d", "e\\f", "'", "\n"].map(OsString::from).into();
        assert_eq!(split(&joined(&words)), words);
        assert_eq!(split(b"-DA='x y' b\\ c\n\td"), ["-DA=x y", "b c", "d"]);
    }

    #[test]
    fn a_response_file_that_names_itself_comes_to_an_end() {
        let path = std::env::temp_dir().join(format!("ccd-response-{}", std::process::id()));
        std::fs::write(&path, format!("-c @{}", path.display())).unwrap();
        let words = expanded(&[OsString::from(format!("@{}", path.display()))]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(words.len(), DEEPEST + 1);
        assert_eq!(expanded(&["@/dev/zero".into(), "@/no/such".into()]), ["@/dev/zero", "@/no/such"]);
    }
}
