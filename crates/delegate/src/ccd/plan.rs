//! The resolved delegation plan: which compiler is for which source, and how it is called. kdyno writes it
//! (docs/delegation.md), and it has been checked by then; what makes no sense is refused here all the same.

use std::collections::BTreeMap;
use std::path::Path;

use glob::{MatchOptions, Pattern};
use serde::Deserialize;

use super::family::Family;
use super::passes::BUILT_IN;
use super::profile::Profile;

/// The version of the file that this program reads.
const FORMAT: u32 = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    format: u32,
    /// Answers all that no rule is about.
    pub reference: String,
    pub compilers: BTreeMap<String, Compiler>,
    pub assembler: Vec<String>,
    /// A probe passes only if every compiler passes it.
    pub held: bool,
    pub fallback: bool,
    /// Keep the assembler text beside the object.
    pub assem: bool,
    /// Look through each object of the running kernel, and put what is found on record.
    #[serde(default)]
    pub lint: bool,
    /// Passes that the user added: a command for each name.
    #[serde(default)]
    pub programs: BTreeMap<String, Vec<String>>,
    pub rules: Vec<Rule>,
    /// For every source of the running kernel that a compiler of the profile's family compiles.
    #[serde(default)]
    pub profiles: Vec<Profile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compiler {
    pub family: Family,
    pub command: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    files: Vec<String>,
    pub compiler: String,
    #[serde(default)]
    pub add: Vec<String>,
    #[serde(default)]
    pub remove: Vec<String>,
    #[serde(default)]
    pub by_assembler: bool,
    #[serde(default)]
    pub passes: Vec<String>,
}

impl Plan {
    pub fn read(path: &Path) -> Result<Self, String> {
        let of = |error: &dyn std::fmt::Display| format!("the delegation plan {}: {error}", path.display());
        let text = std::fs::read(path).map_err(|error| of(&error))?;
        let plan: Self = serde_json::from_slice(&text).map_err(|error| of(&error))?;
        plan.check().map_err(|why| of(&why))?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("format {}, and this ccd reads {FORMAT}: they are of different versions", self.format));
        }
        if self.assembler.is_empty() {
            return Err("the assembler has no command".to_owned());
        }
        if let Some((name, _)) = self.compilers.iter().find(|(_, compiler)| compiler.command.is_empty()) {
            return Err(format!("the compiler {name} has no command"));
        }
        if let Some((name, _)) = self.programs.iter().find(|(_, command)| command.is_empty()) {
            return Err(format!("the pass {name} has no command"));
        }
        let known = |name: &String| {
            self.compilers.contains_key(name).then_some(()).ok_or(format!("{name} is not among its compilers"))
        };
        known(&self.reference)?;
        for rule in &self.rules {
            let of = |why: String| format!("{}: {why}", rule.name);
            known(&rule.compiler).map_err(of)?;
            for pass in &rule.passes {
                if !self.programs.contains_key(pass) && !BUILT_IN.iter().any(|built_in| built_in.name == pass) {
                    return Err(of(format!("no pass is called {pass}")));
                }
            }
            if !rule.passes.is_empty() && !rule.by_assembler {
                return Err(of("passes need by_assembler".to_owned()));
            }
            for glob in &rule.files {
                Pattern::new(glob).map_err(|error| of(format!("{glob}: {error}")))?;
            }
        }
        Ok(())
    }

    pub fn reference(&self) -> &Compiler {
        &self.compilers[&self.reference]
    }

    pub fn compiler(&self, rule: &Rule) -> &Compiler {
        &self.compilers[&rule.compiler]
    }

    /// Return the compilers beside the reference, by name, whether or not a rule chooses them: plans with the same
    /// compilers have the same configuration.
    pub fn others(&self) -> impl Iterator<Item = (&str, &Compiler)> {
        let others = self.compilers.iter().filter(|(name, _)| **name != self.reference);
        others.map(|(name, compiler)| (name.as_str(), compiler))
    }

    /// Return whether GNU as assembles everything that a compiler makes, if it makes anything.
    pub fn is_by_assembler_only(&self, name: &str) -> bool {
        let mut theirs = self.rules.iter().filter(|rule| rule.compiler == name).peekable();
        theirs.peek().is_some() && theirs.all(|rule| rule.by_assembler)
    }

    /// Return the first rule that is about a source, a path in the kernel's tree.
    pub fn rule_for(&self, source: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.files.iter().any(|glob| is_match(glob, source)))
    }

    /// Return whether a rule leaves every call as it is.
    pub fn is_idle(&self, rule: &Rule) -> bool {
        rule.compiler == self.reference && rule.add.is_empty() && rule.remove.is_empty() && !rule.by_assembler
    }
}

/// Return whether a glob matches a source: `*` and `?` stay within a directory; `**` is any number of directories.
fn is_match(glob: &str, source: &str) -> bool {
    let within = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
    // A table may have a rule for each file.
    if !glob.contains(['*', '?', '[']) {
        return glob == source;
    }
    Pattern::new(glob).is_ok_and(|pattern| pattern.matches_with(source, within))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specimen() -> Plan {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/delegation/resolved.json");
        Plan::read(Path::new(path)).unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let plan = specimen();
        let rule = |source| plan.rule_for(source).map(|rule| rule.name.as_str());
        for source in ["kernel/sched/core.c", "mm/mmap.c", "mm/kasan/report.c", "fs/open.c"] {
            assert_eq!(rule(source), Some("rule 1"), "{source}");
        }
        for source in ["kernel/fork.c", "kernel/sched/a/b.c", "fs/ext4/fs/open.c", "mm.c"] {
            assert_eq!(rule(source), Some("rule 2"), "{source}");
        }
    }

    #[test]
    fn a_rule_that_changes_nothing_is_idle() {
        let plan = specimen();
        assert_eq!(plan.rules.iter().map(|rule| plan.is_idle(rule)).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn every_compiler_of_a_plan_has_a_say_in_probes() {
        let plan = specimen();
        assert_eq!(plan.others().map(|(name, _)| name).collect::<Vec<_>>(), ["clang-19", "zig"]);
        assert!(plan.is_by_assembler_only("clang-19") && !plan.is_by_assembler_only("zig"));
    }

    #[test]
    fn globs_match_what_kdyno_matches_too() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/delegation/globs.json");
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        for row in &rows {
            let text = |key: &str| row[key].as_str().unwrap();
            assert_eq!(is_match(text("glob"), text("path")), row["matches"], "{row}");
        }
        assert!(rows.len() > 20);
    }
}
