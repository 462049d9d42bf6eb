//! Maximum-likelihood decoding by inactivation: from equations over blocks to a [`Schedule`] of sums.
//!
//! Blocks are found one by one as long as some equation lacks only one (*peeling*). Where none does, a block is set aside:
//! it is *inactive*, and all that is found from then on is found up to a sum of inactive blocks. The equations that are
//! left over then say what the inactive blocks are, by a small dense system (RFC 6330, section 5.4.2).
//!
//! Reading order: [`System`], then `peeled` (which equation finds which block), `core` (the inactive blocks) and `plan` (what is
//! added up, in which order).

mod core;
mod peeled;
mod plan;

use self::core::Core;
use super::rows::Rows;
use super::schedule::Schedule;
use crate::field::quotient;
use peeled::Peeled;
use plan::Plan;
use thiserror::Error;

/// Equations over `columns` blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct System<'a> {
    /// First those whose sum is zero, then one for each symbol.
    pub(super) rows: &'a Rows,
    /// How many have a sum of zero.
    pub(super) constraints: usize,
    pub(super) columns: u32,
    /// So many equations over GF(256) say that a sum of the first `bound` columns is zero. Together at most 256.
    pub(super) dense: u32,
    pub(super) bound: u32,
}

/// The symbols do not determine the blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("at least {symbols} more symbols are needed")]
pub struct Lacking {
    /// As many more are needed at least.
    pub symbols: usize,
}

impl System<'_> {
    /// How to make each of the `wanted` sums of columns from the symbols.
    ///
    /// # Errors
    /// If the equations do not determine the columns.
    pub(super) fn solve(&self, wanted: &Rows) -> Result<Schedule, Lacking> {
        let peeled = Peeled::new(self);
        let core = Core::new(self, &peeled)?;
        Ok(Plan::new(self, &peeled, &core, wanted).schedule())
    }

    /// The coefficient of a bound column in a dense equation: a Cauchy matrix.
    fn coefficient(&self, equation: u32, column: u32) -> u8 {
        quotient(1, equation as u8 ^ (self.dense + column) as u8)
    }
}
