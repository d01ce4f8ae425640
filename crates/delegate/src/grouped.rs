//! The list of what compilers called hot or cold. The link puts their sections together, so that vmlinux doesn't have it.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::inputs::Code;
use crate::script::is_functions;

/// The list, beside the output; kdyno keeps it with the image. A line of JSON for each section.
pub const LIST: &str = ".kdyno-sections.jsonl";

/// A section of a group.
#[derive(Debug, PartialEq, Serialize)]
pub struct Grouped {
    pub section: String,
    /// Where it was found, as the link has it.
    pub object: String,
    pub bytes: u64,
}

impl Grouped {
    /// Return the function of a section; None for a section whose name can't be a function's, and for an empty one.
    pub fn of(object: &Path, section: &Code) -> Option<Self> {
        let is_one = is_functions(section.name) && section.size > 0;
        is_one.then(|| Self {
            section: section.name.to_owned(),
            object: object.to_string_lossy().into_owned(),
            bytes: section.size,
        })
    }
}

/// Write the list of a link; an empty one says that nothing was hot or cold.
pub fn keep(output: &Path, sections: &[Grouped]) -> Result<(), String> {
    let path = output.with_file_name(LIST);
    let of = |why: &dyn std::fmt::Display| format!("can't write {}: {why}", path.display());
    let mut lines = Vec::new();
    for section in sections {
        serde_json::to_writer(&mut lines, section).map_err(|error| of(&error))?;
        lines.push(b'\n');
    }
    fs::write(&path, lines).map_err(|error| of(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(name: &str, size: u64) -> Option<Grouped> {
        Grouped::of(Path::new("fs/open.o"), &Code { index: 1, name, align: 16, size })
    }

    #[test]
    fn a_list_has_a_line_for_each_section_and_an_empty_one_none() {
        let directory = std::env::temp_dir().join(format!("lkd-grouped-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let kept = |sections: &[Grouped]| {
            keep(&directory.join("vmlinux"), sections).unwrap();
            fs::read_to_string(directory.join(LIST)).unwrap()
        };
        let line = "{\"section\":\".text.hot.do_open\",\"object\":\"fs/open.o\",\"bytes\":48}\n";
        assert_eq!(kept(&[grouped(".text.hot.do_open", 48).unwrap()]), line);
        assert_eq!(kept(&[]), "");
        fs::remove_dir_all(&directory).unwrap();
        assert!(keep(&directory.join("vmlinux"), &[]).unwrap_err().starts_with("can't write "));
    }

    #[test]
    fn a_section_without_code_or_with_a_name_that_is_no_functions_is_left_out() {
        assert_eq!(grouped(".text.hot.f", 0), None);
        assert_eq!(grouped(".text.hot.f g", 1), None);
        assert_eq!(grouped(".text.unlikely.f\u{1b}[2J", 1), None);
    }
}
