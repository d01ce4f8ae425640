//! What is known of all files together: the names that they define, and which functions run with the FPU saved.

use object::{Object, ObjectSymbol, elf};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::binary::{Binary, Relocation, Target};
use crate::costly::{Tally, count};
use crate::disassembly::instructions;
use crate::settings::Settings;

/// kernel_fpu_begin() is inline since 5.11 and calls the first one (arch/x86/include/asm/fpu/api.h). The last is how
/// amdgpu calls it (drivers/gpu/drm/amd/display/amdgpu_dm/dc_fpu.c).
const BEGINS: [&str; 3] = ["kernel_fpu_begin_mask", "kernel_fpu_begin", "dc_fpu_begin"];

/// What KVM calls before it reads or writes a guest's vector registers (kvm_fpu_get() of arch/x86/kvm/fpu.h).
const LOADS: &str = "switch_fpu_return";

#[derive(Default)]
pub struct Shared {
    defined: FxHashSet<String>,
    /// By file, the position of its first function among `nodes`.
    first_node: Vec<usize>,
    nodes: Vec<Node>,
    /// Global functions.
    by_name: FxHashMap<String, usize>,
    /// Who refers to whom; None is data, which may be called from anywhere.
    edges: Vec<(Option<usize>, Callee)>,
    /// By rule.
    costly: Vec<Tally>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// Runs between kernel_fpu_begin() and kernel_fpu_end().
    is_guarded: bool,
    /// Has the registers loaded that it means to look at. What it calls is another matter.
    loads: bool,
    is_called: bool,
    /// References by what isn't guarded.
    unguarded: usize,
}

enum Callee {
    Node(usize),
    Name(String),
}

impl Shared {
    /// Return a set that has these names beside those of its files.
    pub fn new(settings: &Settings) -> Shared {
        Shared { defined: settings.symbols.iter().cloned().collect(), ..Shared::default() }
    }

    pub fn defines(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// Return, by rule, the functions that have most of its instructions.
    pub fn costly(&self) -> &[Tally] {
        &self.costly
    }

    /// Return whether a function of a file may use the FPU's registers; right after `finish`.
    pub fn may_use_registers(&self, file: usize, function: usize) -> bool {
        let node = self.nodes[self.first_node[file] + function];
        node.is_guarded || node.loads
    }

    /// Return whether a function of a file is called, or pointed at, by what is known; right after `finish`.
    pub fn is_called(&self, file: usize, function: usize) -> bool {
        self.nodes[self.first_node[file] + function].is_called
    }

    /// Add one file; files are known by the order in which they are added.
    pub fn add(&mut self, binary: &Binary, settings: &Settings) {
        if !settings.costly.is_empty() {
            let executions = settings.executions.as_deref();
            count(&settings.costly, binary, self.first_node.len(), executions, &mut self.costly);
        }
        let first = self.nodes.len();
        self.first_node.push(first);
        let symbols = || binary.elf.symbols().filter_map(|symbol| Some((symbol.name().ok()?, symbol)));
        let defined = symbols().filter(|(_, symbol)| symbol.is_global() && !symbol.is_undefined());
        self.defined.extend(defined.map(|(name, _)| name.to_owned()));
        // The code of an object that saves the FPU is written for it.
        let is_written_for_it =
            binary.is_object && symbols().any(|(name, symbol)| symbol.is_undefined() && BEGINS.contains(&name));
        for (position, function) in binary.functions.iter().enumerate() {
            self.nodes.push(Node { is_guarded: is_written_for_it, ..Node::default() });
            if function.is_global {
                self.by_name.entry(function.name.to_owned()).or_insert(first + position);
            }
        }
        self.add_branches(binary, first);
        for section in binary.sections.iter().filter(|section| section.is_code || holds_pointers(section.name)) {
            for relocation in &section.relocations {
                let from =
                    binary.function_at(section.base.saturating_add(relocation.offset)).map(|caller| first + caller);
                if from.is_some() || !is_written_for_it {
                    self.add_reference(binary, first, from, reference(binary, relocation));
                }
            }
        }
    }

    /// Add branches from function to function; those with a relocation are among the relocations.
    fn add_branches(&mut self, binary: &Binary, first: usize) {
        for (caller, function) in binary.functions.iter().enumerate() {
            for instruction in
                instructions(binary, function).filter(|instruction| instruction.near_branch_target() != 0)
            {
                let (start, length) = (instruction.ip(), instruction.len() as u64);
                let target = instruction.near_branch_target();
                let is_own = (function.start..function.end).contains(&target);
                if !is_own && binary.relocation_in(function.section, start, length).is_none() {
                    self.add_reference(binary, first, Some(first + caller), Target::Address(target));
                }
            }
        }
    }

    fn add_reference(&mut self, binary: &Binary, first: usize, from: Option<usize>, target: Target) {
        match target {
            Target::Address(address) => {
                let callee = binary.function_at(address).filter(|to| binary.functions[*to].start == address);
                let Some(callee) = callee.filter(|to| from != Some(first + to)) else {
                    return;
                };
                self.edges.push((from, Callee::Node(first + callee)));
                if let Some(from) = from {
                    let name = binary.functions[callee].name;
                    self.nodes[from].is_guarded |= BEGINS.contains(&name);
                    self.nodes[from].loads |= name == LOADS;
                }
            }
            Target::Undefined(name) => {
                if let Some(from) = from {
                    self.nodes[from].loads |= name == LOADS;
                }
                self.edges.push((from, Callee::Name(name.to_owned())));
            }
            Target::Unknown => {}
        }
    }

    /// Finish after the last file: a function is guarded as well if all that refer to it are.
    pub fn finish(&mut self) {
        let mut callees: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (from, callee) in std::mem::take(&mut self.edges) {
            let callee = match callee {
                Callee::Node(node) => Some(node),
                Callee::Name(name) => self.by_name.get(&name).copied(),
            };
            let Some(callee) = callee else { continue };
            self.nodes[callee].is_called = true;
            if from.is_none_or(|from| !self.nodes[from].is_guarded) {
                self.nodes[callee].unguarded += 1;
            }
            if let Some(from) = from {
                callees[from].push(callee);
            }
        }
        let is_new = |node: &Node| !node.is_guarded && node.is_called && node.unguarded == 0;
        let mut waiting: Vec<usize> = (0..self.nodes.len()).filter(|node| is_new(&self.nodes[*node])).collect();
        while let Some(node) = waiting.pop() {
            self.nodes[node].is_guarded = true;
            for callee in std::mem::take(&mut callees[node]) {
                self.nodes[callee].unguarded -= 1;
                if is_new(&self.nodes[callee]) {
                    waiting.push(callee);
                }
            }
        }
    }
}

/// Return whether it is a table of functions; other sections name code for the linker, the unwinder or patching.
fn holds_pointers(section: &str) -> bool {
    section.starts_with(".data") || section.starts_with(".rodata")
}

/// Return the function that a relocation names, of a branch, of an address in code or of a pointer.
fn reference<'data>(binary: &Binary<'data>, relocation: &Relocation) -> Target<'data> {
    let is_relative = matches!(relocation.kind, elf::R_X86_64_PC32 | elf::R_X86_64_PLT32);
    binary.pointed_at(relocation, if is_relative { 4 } else { 0 })
}
