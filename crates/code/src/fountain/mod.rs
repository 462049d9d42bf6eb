//! Fountain codes: from some blocks as many symbols as anybody wants, of which a few more than there are blocks give all back.
//!
//! Two codes: [`Precoded`], for use, and [`Lt`], that of the RobuSTore paper. Both turn numbers of symbols into a [`Schedule`], which
//! turns blocks into symbols and back. [`Peeling`] is the paper's decoder, which works while symbols arrive.
//!
//! Reading order: `soliton` (how many blocks a symbol adds up), `lt` and `peeling`; `precoded`, then `inactivation` (how equations
//! become a schedule), and `schedule` (where the time goes). Why, and what was measured:
//! `docs/decisions/2026-11-25-large-objects.md`. What symbols are made of is stored with objects, and never changes.

mod bits;
mod draw;
mod inactivation;
mod lt;
mod peeling;
mod precoded;
mod rows;
mod schedule;
mod soliton;

pub use inactivation::Lacking;
pub use lt::Lt;
pub use peeling::{Found, Peeling};
pub use precoded::Precoded;
pub use schedule::{Cost, Schedule, Scratch};
pub use soliton::{Degrees, Spike};
