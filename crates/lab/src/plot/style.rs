//! Colours, dashes and shapes. A scheme looks the same in all pictures, and no two are told apart by colour alone.

/// How a series looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) colour: &'static str,
    /// A pattern of dashes; empty for a whole line.
    pub(super) dashes: &'static str,
    pub(super) width: f64,
    pub(super) shape: Shape,
}

/// What stands at each figure of a curve.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Cross,
}

/// Okabe and Ito's colours, which people with any kind of colour vision tell apart.
const KNOWN: &[(&str, Style)] = &[
    ("Central SPTF", Style { colour: "#999999", dashes: "", width: 6.0, shape: Shape::Circle }),
    ("D-SPTF", Style { colour: "#0072b2", dashes: "", width: 2.0, shape: Shape::Circle }),
    ("Hashing", Style { colour: "#d55e00", dashes: "7 4", width: 2.0, shape: Shape::Square }),
    ("LARD", Style { colour: "#009e73", dashes: "2 4", width: 2.5, shape: Shape::Triangle }),
    ("Weighted hash", Style { colour: "#cc79a7", dashes: "9 3 2 3", width: 2.0, shape: Shape::Cross }),
];

const OTHERS: &[Style] = &[
    Style { colour: "#0072b2", dashes: "", width: 2.0, shape: Shape::Circle },
    Style { colour: "#d55e00", dashes: "7 4", width: 2.0, shape: Shape::Square },
    Style { colour: "#009e73", dashes: "2 4", width: 2.5, shape: Shape::Triangle },
    Style { colour: "#cc79a7", dashes: "9 3 2 3", width: 2.0, shape: Shape::Cross },
    Style { colour: "#56b4e9", dashes: "5 3", width: 2.0, shape: Shape::Circle },
    Style { colour: "#e69f00", dashes: "1 3", width: 2.5, shape: Shape::Square },
    Style { colour: "#000000", dashes: "12 4", width: 1.5, shape: Shape::Triangle },
];

/// The style of the series `name`, which is the `at`-th of its picture.
pub(super) fn of(name: &str, at: usize) -> Style {
    let known = KNOWN.iter().find(|(known, _)| *known == name).map(|(_, style)| *style);
    known.unwrap_or(OTHERS[at % OTHERS.len()])
}
