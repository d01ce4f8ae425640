//! The table of options as Markdown, for docs/delegation.md.

use std::fmt::Write;

use super::{Answer, Row, additional, to_both, to_clang, to_gcc, zig};
use crate::ccd::family::Family;

/// Return the table of options: what changes on the way to each family, why, and what stays.
pub fn table() -> String {
    let mut text = String::new();
    changes(&mut text, "GCC to clang", to_clang::ROWS, additional(Family::Clang));
    changes(&mut text, "Clang to GCC", to_gcc::ROWS, additional(Family::Gcc));
    changes(&mut text, "Clang to zig cc", &zig::ROWS, &zig::WORDS);
    write!(text, "### Kept\n\n{}.\n", listed(to_both::ROWS.iter().map(Row::pattern))).expect(STRING);
    text
}

fn changes(text: &mut String, title: &str, rows: &[Row], additional: &[&str]) {
    write!(text, "### {title}\n\n| option | becomes | why |\n| --- | --- | --- |\n").expect(STRING);
    for row in rows {
        writeln!(text, "| `{}` | {} | {} |", row.pattern(), row.becomes(), row.why()).expect(STRING);
    }
    writeln!(text, "\nBehind them go {}.\n", listed(additional.iter().map(ToString::to_string))).expect(STRING);
}

const STRING: &str = "a string takes all";

fn listed(options: impl Iterator<Item = String>) -> String {
    options.map(|option| format!("`{option}`")).collect::<Vec<_>>().join(", ")
}

impl Row {
    /// Return the option; `…` is anything.
    fn pattern(&self) -> String {
        format!("{}{}", self.option, if self.example.is_some() { "…" } else { "" })
    }

    fn becomes(&self) -> String {
        match self.answer {
            Answer::Keep => "the same".to_owned(),
            Answer::Drop(_) => "nothing".to_owned(),
            Answer::Replace(by, _) => format!("`{}`", by.join(" ")),
            Answer::Respell(by, _) => format!("`{}…`", by.join(" ")),
        }
    }

    fn why(&self) -> &'static str {
        match self.answer {
            Answer::Keep => "",
            Answer::Drop(why) | Answer::Replace(_, why) | Answer::Respell(_, why) => why,
        }
    }
}
