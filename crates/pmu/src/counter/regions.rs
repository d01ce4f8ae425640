//! When regions begin and end, as markers say, and what then becomes of what was counted. Not in the hot path.

use super::Counter;
use crate::region::{Finished, Identity};
use crate::stacks::Task;

impl Counter {
    pub fn announce(&mut self, bit: u32) {
        self.word = self.word << 1 | bit;
    }

    /// Open the measured part.
    pub fn open(&mut self) {
        let identity = Identity::from_word(self.word);
        if identity.is_unseen() || self.active || self.has_given_up() {
            return;
        }
        if identity.is_warm_up() {
            self.is_warming = self.is_detailed();
            self.active = self.is_warming;
            return self.start();
        }
        if self.identity != Some(identity) {
            self.end_iteration();
            if self.identity.is_none_or(|previous| previous.benchmark != identity.benchmark) {
                self.end_benchmark();
            }
            let root = self.regions.begin(identity, &mut self.blocks.room);
            let Some(root) = root.filter(|_| !self.has_given_up()) else {
                return;
            };
            if let Some(trace) = &mut self.trace {
                trace.clear();
            }
            self.identity = Some(identity);
            self.root = root;
        }
        self.regions_opened += 1;
        self.active = true;
        self.start();
    }

    /// Start afresh: nothing that ran before the measured part belongs to it.
    fn start(&mut self) {
        self.previous = self.outside;
        self.previous_user = std::ptr::null();
        self.tasks.forget();
        self.task = Task::new(self.root);
        if let Some(trace) = &mut self.trace {
            trace.interrupt();
        }
        if let Some(detail) = &mut self.detail {
            detail.pipeline.reset();
            detail.frontend.reset();
        }
    }

    /// Close the measured part.
    pub fn close(&mut self) {
        (self.active, self.is_warming) = (false, false);
    }

    fn end_iteration(&mut self) {
        if let Some(identity) = self.identity {
            self.regions.end_iteration(identity, &mut self.counted, &mut self.blocks);
        }
    }

    fn end_benchmark(&mut self) {
        if let Some(identity) = self.identity {
            self.regions.end_benchmark(identity, &mut self.counted, &mut self.blocks);
            if let Some(trace) = &mut self.trace {
                self.regions.keep_trace(identity, trace);
            }
        }
    }

    /// Return what was counted in all.
    pub fn finish(&mut self) -> Finished<'_> {
        self.end_iteration();
        self.end_benchmark();
        let unmeasured = self.blocks.unmeasured().unwrap_or_default();
        Finished {
            unmeasured,
            gave_up: self.blocks.room.excess(),
            regions_opened: self.regions_opened,
            unclosed: self.identity.filter(|_| self.active && !self.is_warming),
            regions: &self.regions,
            symbols: self.blocks.symbols(),
        }
    }
}
