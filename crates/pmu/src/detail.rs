//! The processor that `events=all` adds: what one block after another does in its pipeline, memory, front end and
//! predictor.

use crate::block::Block;
use crate::decode::Exit;
use crate::events::{Counts, Event};
use crate::frontend::Frontend;
use crate::geometry::Geometry;
use crate::hardware::Hardware;
use crate::pipeline::Pipeline;
use crate::predictor::Predictor;
use crate::trace::Way;

/// What `events=all` adds.
pub struct Detail {
    pub pipeline: Pipeline,
    pub hardware: Hardware,
    pub frontend: Frontend,
    predictor: Predictor,
}

impl Detail {
    pub fn new(geometry: &Geometry) -> Detail {
        Detail {
            pipeline: Pipeline::new(geometry),
            hardware: Hardware::new(geometry),
            frontend: Frontend::new(geometry),
            predictor: Predictor::new(&geometry.predictor),
        }
    }

    /// Return whether it was known that one block follows another.
    #[inline(always)]
    pub fn follow(&mut self, before: &Block, now: &Block, counts: &mut Counts) -> Way {
        // What an exception or an interrupt broke off was not a branch to its entry.
        if now.arrival.is_some() || before.is_outside() || before.facts.exit == Exit::TrapReturn {
            self.frontend.restart(self.pipeline.dispatched());
            return Way::Entered;
        }
        let is_taken = now.facts.start != before.facts.end;
        if is_taken {
            self.frontend.taken(&before.facts.fetched(), counts);
        }
        match (self.predict(before, now, counts), is_taken) {
            (true, _) => Way::Unexpected,
            (false, true) => Way::Taken,
            (false, false) => Way::Through,
        }
    }

    #[inline(always)]
    pub fn fetch(&mut self, block: &Block, counts: &mut Counts) {
        let dispatched = self.pipeline.dispatched();
        let time = self.frontend.fetch(&block.facts.fetched(), dispatched, &mut self.hardware, counts);
        self.pipeline.fetched(time);
    }

    /// Return whether a branch went where it wasn't expected to go.
    #[inline(always)]
    fn predict(&mut self, before: &Block, now: &Block, counts: &mut Counts) -> bool {
        let (branch, target) = (before.facts.last, now.facts.start);
        let (missed, event) = match before.facts.exit {
            Exit::Conditional { target: taken } if target == taken || target == before.facts.end => {
                (self.predictor.conditional(branch, target == taken), Event::mispredicted_conditional)
            }
            Exit::Return => (self.predictor.returned(target), Event::mispredicted_returns),
            Exit::Call { target: there } => {
                if there == target {
                    self.predictor.call(before.facts.end);
                }
                return false;
            }
            Exit::IndirectCall => {
                self.predictor.call(before.facts.end);
                (self.predictor.indirect(branch, target), Event::mispredicted_indirect)
            }
            Exit::IndirectJump => (self.predictor.indirect(branch, target), Event::mispredicted_indirect),
            _ => return false,
        };
        if missed {
            counts[event as usize] += 1;
            self.pipeline.mispredicted();
            self.frontend.restart(self.pipeline.dispatched());
        }
        missed
    }
}
