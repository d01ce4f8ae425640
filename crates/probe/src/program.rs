//! What a program is.

/// The part that is measured. It goes on where it stopped: no run sees the same random data twice.
pub type Body = Box<dyn FnMut() -> u64>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The weights are fitted to it.
    Fit,
    /// The weights are judged by it. Never changed to `Fit` for the sake of a figure.
    HeldOut,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Fit => "fit",
            Role::HeldOut => "held-out",
        }
    }
}

pub struct Program {
    pub name: &'static str,
    pub role: Role,
    pub summary: &'static str,
    /// Makes the data; what it returns does the work, 0.1 to 5 ms of it.
    pub prepare: fn() -> Body,
    /// Marked runs until its caches and predictors are as warm as natively.
    pub turns: u16,
}

impl Program {
    /// Mark a program that touches another part of its data in each run, or whose branches repeat only from run to run.
    pub const fn slow_to_warm(self) -> Program {
        Program { turns: 20, ..self }
    }
}

const TURNS: u16 = 6;

pub const fn fit(name: &'static str, summary: &'static str, prepare: fn() -> Body) -> Program {
    Program { name, role: Role::Fit, summary, prepare, turns: TURNS }
}

pub const fn held_out(name: &'static str, summary: &'static str, prepare: fn() -> Body) -> Program {
    Program { name, role: Role::HeldOut, summary, prepare, turns: TURNS }
}
