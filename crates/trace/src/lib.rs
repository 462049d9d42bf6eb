//! Block traces: who asked for which sectors when. Readers of the formats in which public traces come, a writer, what can
//! be said of a trace, and a generator of traces from a statistical description.
//!
//! Reading order: [`record`], [`reader`] (a trace as an iterator, with all that may be wrong with one), [`format`] (a file
//! a format), [`write`](mod@write), [`info`] (statistics in bounded memory), [`generate`] (synthetic traces).
//!
//! Deliberately absent: files and clocks. A trace comes from a [`std::io::Read`], and goes to a [`std::io::Write`].

pub mod compress;
pub mod error;
mod field;
pub mod format;
pub mod generate;
pub mod info;
mod input;
mod order;
pub mod reader;
mod recency;
pub mod record;
pub mod write;

pub use error::{Fault, Place, TraceError, Warning};
pub use format::Format;
pub use generate::{Description, DescriptionError, TraceSource};
pub use info::{Statistics, Summary};
pub use order::{Order, WINDOW_RECORDS};
pub use reader::{Bounds, Options, Origin, Reader, Sizes};
pub use record::{Record, SECTOR_BYTES};
pub use write::{Target, Writer};
