//! A picture as PNG.

use crate::error::LabError;
use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Pixels for each unit of the SVG: sharp on paper and on dense screens.
const ZOOM: f32 = 2.0;
const REGULAR: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSans-Bold.ttf");

/// The picture that `svg` draws, as a file's content. `name` names it in errors.
///
/// # Errors
/// If the SVG is none, or too large for memory.
pub fn png(name: &str, svg: &str) -> Result<Vec<u8>, LabError> {
    let fail = |why: String| LabError::Picture { name: name.to_owned(), why };
    let tree = usvg::Tree::from_str(svg, &options()).map_err(|error| fail(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(ZOOM).ok_or_else(|| fail("it has no size".to_owned()))?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
        .ok_or_else(|| fail("it is too large".to_owned()))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(ZOOM, ZOOM), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| fail(error.to_string()))
}

/// No font of the machine is looked at: the same picture everywhere.
fn options() -> usvg::Options<'static> {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    usvg::Options {
        fontdb: Arc::new(fonts),
        font_family: "DejaVu Sans".to_owned(),
        ..usvg::Options::default()
    }
}
