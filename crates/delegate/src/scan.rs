//! The text of a linker script: its words, its comments, its statements.

/// Return where the last statement of a text starts, which ends within it; at `least`, where an output section starts.
pub fn statement_start(text: &str, least: usize) -> usize {
    let (mut depth, mut start) = (0_usize, least);
    for (at, c) in text[least..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (matches!(c, ')' | ';') || c.is_whitespace()) {
            start = least + at + c.len_utf8();
        }
    }
    start
}

/// Return the words of a script and where they start.
pub fn words(script: &str) -> impl Iterator<Item = (usize, &str)> {
    let parts = script.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ';'));
    parts.map(|word| (word.as_ptr() as usize - script.as_ptr() as usize, word))
}

/// Return the script with blanks for its comments, which name patterns as well (7.0 and newer); every place stays the
/// same.
pub fn without_comments(script: &str) -> String {
    let mut bare = String::with_capacity(script.len());
    let mut rest = script;
    while let Some((before, comment)) = rest.split_once("/*") {
        let end = comment.find("*/").map_or(comment.len(), |at| at + 2);
        bare.push_str(before);
        bare.extend(std::iter::repeat_n(' ', end + 2));
        rest = &comment[end..];
    }
    bare + rest
}

/// Return whether a pattern matches more than one name.
pub fn is_wild(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_blanks() {
        assert_eq!(without_comments("a/*b*/c/**/d/*e"), "a     c    d   ");
    }

    #[test]
    fn words_know_where_they_start() {
        let script = " *(.text  .a);b";
        let words: Vec<_> = words(script).filter(|(_, word)| !word.is_empty()).collect();
        assert_eq!(words, [(1, "*"), (3, ".text"), (10, ".a"), (14, "b")]);
        assert!(words.iter().all(|(at, word)| script[*at..].starts_with(word)));
    }

    #[test]
    fn a_statement_starts_behind_the_one_before() {
        for (before, last) in [
            (".text : { ", "*(.text.hot "),
            (".text : { *(.a .b) ", "KEEP(*(.text.hot "),
            (".text : { . = ALIGN((1 << 12)); ", "*("),
            (".text : {*(.a)", "*("),
        ] {
            let text = format!("{before}{last}");
            assert_eq!(statement_start(&text, text.find('{').unwrap() + 1), before.len(), "{text}");
        }
    }
}
