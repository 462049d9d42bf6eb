//! What operations have computed by others: who waits for what.

use crate::netraid::outcome::OperationId;
use base::HashMap;
use code::Computation;

/// Names what is computed, and what came of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ComputationId(pub u64);

#[derive(Default)]
pub(crate) struct Computations {
    under_way: HashMap<ComputationId, OperationId>,
    /// To be handed out.
    begun: Vec<(ComputationId, Computation)>,
}

impl Computations {
    pub(crate) fn begin(&mut self, id: ComputationId, wanted_by: OperationId, computation: Computation) {
        self.under_way.insert(id, wanted_by);
        self.begun.push((id, computation));
    }

    /// Who wanted what is computed now; it may have ended meanwhile, or want something else.
    pub(crate) fn end(&mut self, id: ComputationId) -> Option<OperationId> {
        self.under_way.remove(&id)
    }

    /// What is to be handed out since the last call.
    pub(crate) fn take_begun(&mut self) -> Vec<(ComputationId, Computation)> {
        core::mem::take(&mut self.begun)
    }
}
