//! Sections that a kernel's linker script doesn't know, and that become part of its data.
//!
//! The linker puts such a section where it likes. For a kernel that may be among what it frees after boot.

use crate::scan::{without_comments, words};

/// The output section behind which they go.
const DATA: &str = ".data";

/// Return the script with an output section for each of these, in their order, behind `.data`. They have its load
/// offset and its program header. Returns why that can't be.
pub fn with_data(script: &str, sections: &[&str]) -> Result<String, String> {
    if sections.is_empty() {
        return Ok(script.to_owned());
    }
    let bare = without_comments(script);
    let unfit = || "no output section `.data` in the linker script: there is no place for data".to_owned();
    let (start, open) = output_section(&bare, DATA).ok_or_else(unfit)?;
    let end = block_end(&bare, open).ok_or_else(unfit)?;
    let head = &bare[start + DATA.len()..open];
    let outputs: String =
        sections.iter().map(|name| format!("\n{name} {} {{ *({name}) }}", head.replace(DATA, name).trim())).collect();
    Ok([&script[..end], &outputs, &script[end..]].concat())
}

/// Return where the name of an output section starts, and the brace that opens its description.
fn output_section(bare: &str, name: &str) -> Option<(usize, usize)> {
    words(bare).filter(|(_, word)| *word == name).find_map(|(at, _)| {
        let behind = at + name.len();
        let open = behind + bare[behind..].find('{')?;
        let is_head = bare[behind..].trim_start().starts_with(':') && !bare[behind..open].contains([';', '}']);
        is_head.then_some((at, open))
    })
}

/// Return the end of a description: behind its closing brace, and behind what belongs to it: `:data`, `=0x90`, `>ram`.
fn block_end(bare: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let close = bare[open..].char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(open + at + 1)
    })?;
    let mut end = close;
    loop {
        let rest = &bare[end..];
        let word = rest.trim_start();
        if !word.starts_with([':', '=', '>']) {
            return Some(end);
        }
        let length = word.find(|c: char| c.is_whitespace() || c == '}').unwrap_or(word.len());
        end += rest.len() - word.len() + length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "SECTIONS { .text : { *(.text) } :text =0xcc /* .data : { */ \
        .data : AT(ADDR(.data) - 0xff80) { _sdata = .; *(.data .data[0-9]*) { x } _edata = .; } :data .bss : { *(.bss) } }";

    #[test]
    fn each_section_becomes_an_output_section_behind_the_data() {
        let expected = SCRIPT.replace(
            " :data .bss",
            " :data\n__a : AT(ADDR(__a) - 0xff80) { *(__a) }\n__b : AT(ADDR(__b) - 0xff80) { *(__b) } .bss",
        );
        assert_eq!(with_data(SCRIPT, &["__a", "__b"]).unwrap(), expected);
        assert_eq!(with_data(SCRIPT, &[]).unwrap(), SCRIPT);
    }

    #[test]
    fn a_description_may_be_followed_by_nothing() {
        assert_eq!(with_data("S { .data : { } }", &["__a"]).unwrap(), "S { .data : { }\n__a : { *(__a) } }");
        assert_eq!(
            with_data("S{.x:{}\n.data :{*(.data)}}", &["b"]).unwrap(),
            "S{.x:{}\n.data :{*(.data)}\nb : { *(b) }}"
        );
    }

    #[test]
    fn a_script_without_data_is_refused() {
        for script in ["", "SECTIONS { }", "SECTIONS { .data : { ", "S { x = ADDR(.data); .bss : { } }", ".data : x; }"]
        {
            assert!(with_data(script, &["__a"]).unwrap_err().contains("no place for data"), "{script}");
        }
    }
}
