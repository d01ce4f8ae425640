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
    pub fn follow(&mut self, previous: &Block, current: &Block, counts: &mut Counts) -> Way {
        // What an exception or an interrupt broke off was not a branch to its entry.
        if current.arrival.is_some() || previous.is_outside() || previous.facts.exit == Exit::TrapReturn {
            self.frontend.restart(self.pipeline.dispatch_time());
            return Way::Entered;
        }
        let is_taken = current.facts.start != previous.facts.end;
        if is_taken {
            self.frontend.taken(&previous.facts.fetched(), counts);
        }
        match (self.predict(previous, current, counts), is_taken) {
            (true, _) => Way::Unexpected,
            (false, true) => Way::Taken,
            (false, false) => Way::Through,
        }
    }

    #[inline(always)]
    pub fn fetch(&mut self, block: &Block, counts: &mut Counts) {
        let dispatch_time = self.pipeline.dispatch_time();
        let time = self.frontend.fetch(&block.facts.fetched(), dispatch_time, &mut self.hardware, counts);
        self.pipeline.record_fetch(time);
    }

    /// Return whether a branch went where it wasn't expected to go.
    #[inline(always)]
    fn predict(&mut self, previous: &Block, current: &Block, counts: &mut Counts) -> bool {
        let (branch, target) = (previous.facts.last, current.facts.start);
        let (missed, event) = match previous.facts.exit {
            Exit::Conditional { target: taken } if target == taken || target == previous.facts.end => {
                (self.predictor.conditional(branch, target == taken), Event::mispredicted_conditional)
            }
            Exit::Return => (self.predictor.pop_return(target), Event::mispredicted_returns),
            Exit::Call { target: callee } => {
                if callee == target {
                    self.predictor.call(previous.facts.end);
                }
                return false;
            }
            Exit::IndirectCall => {
                self.predictor.call(previous.facts.end);
                (self.predictor.indirect(branch, target), Event::mispredicted_indirect)
            }
            Exit::IndirectJump => (self.predictor.indirect(branch, target), Event::mispredicted_indirect),
            _ => return false,
        };
        if missed {
            counts[event as usize] += 1;
            self.pipeline.record_misprediction();
            self.frontend.restart(self.pipeline.dispatch_time());
        }
        missed
    }
}
