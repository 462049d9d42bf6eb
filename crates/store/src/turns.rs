//! Turns in which content is destaged. Whoever has the store gives them, one for each that is asked for, so that a cycle takes
//! its place among the requests of clients (`reads::seat`). Where something waits for the cycle it goes on without.

use crate::device::Device;
use wire::disk::{Reply, Token};

/// The most blocks of a turn: about what a disk writes in the time of a few requests.
const BLOCKS_MAX: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Turns {
    turn: Turn,
    /// Something waits for the cycle.
    hurries: bool,
}

#[derive(Debug, Default)]
enum Turn {
    #[default]
    None,
    Asked,
    /// So many blocks may still be begun with.
    Given {
        token: Token,
        left: u32,
    },
}

impl Turns {
    /// Something waits for the cycle, until [`Turns::calm_down`].
    pub(crate) fn hurry(&mut self) {
        self.hurries = true;
    }

    pub(crate) fn calm_down(&mut self) {
        self.hurries = false;
    }

    /// Asks for a turn for so many blocks, unless one is asked for or given, or none is needed.
    pub(crate) fn ask(&mut self, blocks: u32, device: &mut Device) {
        if matches!(self.turn, Turn::None) && !self.hurries {
            self.turn = Turn::Asked;
            device.reply(Reply::WantsToDestage { blocks: blocks.clamp(1, BLOCKS_MAX) });
        }
    }

    /// A turn is given.
    pub(crate) fn begin(&mut self, token: Token, blocks: u32) {
        assert!(matches!(self.turn, Turn::Asked), "each turn was asked for");
        self.turn = Turn::Given { token, left: blocks };
    }

    /// How many blocks may be begun with now.
    pub(crate) fn blocks_max(&self) -> u32 {
        match self.turn {
            _ if self.hurries => u32::MAX,
            Turn::Given { left, .. } => left,
            Turn::None | Turn::Asked => 0,
        }
    }

    /// So many were begun with. The last page of a turn may take more than is left of it.
    pub(crate) fn spend(&mut self, blocks: u32) {
        if let Turn::Given { left, .. } = &mut self.turn {
            *left = left.saturating_sub(blocks);
        }
    }

    /// Whether nothing is left of the turn.
    pub(crate) fn is_spent(&self) -> bool {
        matches!(self.turn, Turn::Given { left: 0, .. })
    }

    /// The turn is over, if one was given: what was begun in it is written.
    pub(crate) fn end(&mut self, device: &mut Device) {
        if let Turn::Given { token, .. } = self.turn {
            self.turn = Turn::None;
            device.reply(Reply::Destaged { token });
        }
    }
}
