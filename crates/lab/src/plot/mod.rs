//! Pictures: what is drawn ([`chart`]), how it becomes SVG (`svg`, with `scale` and `style`), and PNG ([`png`]).
//!
//! A picture is drawn once, as SVG; the PNG is that SVG rendered with a font that is part of the program, so that both
//! look the same on every machine. The paper's values are marked by hollow diamonds.

pub mod chart;
pub mod png;
mod scale;
mod style;
mod svg;

pub use chart::{Axis, Chart, Mark, Plot, Series, Spot};
pub use svg::svg;
