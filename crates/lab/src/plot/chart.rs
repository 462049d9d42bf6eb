//! What a picture shows.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// Its file's name, without ending.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// What the vertical axis measures.
    pub y: Axis,
    pub plot: Plot,
    /// What the paper has.
    pub marks: Vec<Mark>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    pub label: String,
    /// In which unit; empty for a count or a ratio.
    pub unit: String,
    pub begins: Begins,
}

/// Where an axis begins, and how figures lie on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Begins {
    /// At zero, as it must where lengths are compared.
    Zero,
    /// At the least figure.
    Least,
    /// At the power of ten below the least figure; each further one is as long as the one before. What is not above zero is drawn at
    /// the beginning.
    Logarithmic,
}

impl Axis {
    /// An axis that begins at zero.
    pub fn new(label: &str, unit: &str) -> Axis {
        Axis { label: label.to_owned(), unit: unit.to_owned(), begins: Begins::Zero }
    }

    /// The same from the least figure on: for what only orders others.
    #[must_use]
    pub fn not_from_zero(self) -> Axis {
        Axis { begins: Begins::Least, ..self }
    }

    /// The same by powers of ten: for what differs by orders of magnitude.
    #[must_use]
    pub fn logarithmic(self) -> Axis {
        Axis { begins: Begins::Logarithmic, ..self }
    }

    pub fn text(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// How figures are laid out.
#[derive(Clone, Debug, Serialize)]
pub enum Plot {
    /// Curves over a quantity.
    Lines {
        /// What the horizontal axis measures.
        x: Axis,
        series: Vec<Series>,
    },
    Bars {
        /// The groups' names, from left to right.
        groups: Vec<String>,
        /// A bar of each series in each group; x is the group's place.
        series: Vec<Series>,
    },
}

/// A curve, or the bars of one colour.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Its name in the legend. Names of schemes have the same colour in all pictures.
    pub name: String,
    /// Its figures, by rising x.
    pub spots: Vec<Spot>,
}

/// A figure.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spot {
    /// Where: a quantity, or a group's place.
    pub x: f64,
    /// The figure.
    pub y: f64,
    /// Half the width of its 95% confidence interval.
    pub ci95: Option<f64>,
}

/// A value that the paper states.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// The series to which it belongs.
    pub series: String,
    /// Where: a quantity, or a group's place.
    pub x: f64,
    pub y: f64,
}

impl Chart {
    /// Curves, without marks yet.
    pub fn lines(name: &str, title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Chart {
        Chart {
            name: name.to_owned(),
            title: title.to_owned(),
            y,
            plot: Plot::Lines { x, series },
            marks: Vec::new(),
        }
    }

    /// Bars, without marks yet.
    pub fn bars(name: &str, title: &str, y: Axis, groups: Vec<String>, series: Vec<Series>) -> Chart {
        Chart {
            name: name.to_owned(),
            title: title.to_owned(),
            y,
            plot: Plot::Bars { groups, series },
            marks: Vec::new(),
        }
    }

    /// With what the paper has for a series at x.
    #[must_use]
    pub fn marked(mut self, series: &str, x: f64, y: f64) -> Chart {
        self.marks.push(Mark { series: series.to_owned(), x, y });
        self
    }

    /// The curves or bars.
    pub fn series(&self) -> &[Series] {
        match &self.plot {
            Plot::Lines { series, .. } | Plot::Bars { series, .. } => series,
        }
    }

    /// The figures behind the picture as comma-separated values.
    pub fn csv(&self) -> String {
        let (x, groups) = match &self.plot {
            Plot::Lines { x, .. } => (x.text(), None),
            Plot::Bars { groups, .. } => ("group".to_owned(), Some(groups)),
        };
        let mut text = format!("series,\"{x}\",\"{}\",ci95,source\n", self.y.text());
        let mut line = |series: &str, x: f64, y: f64, ci95: Option<f64>, source: &str| {
            let x = groups.map_or_else(|| x.to_string(), |groups| format!("\"{}\"", groups[x as usize]));
            let ci95 = ci95.map_or(String::new(), |half| half.to_string());
            text += &format!("\"{series}\",{x},{y},{ci95},{source}\n");
        };
        for series in self.series() {
            series.spots.iter().for_each(|spot| line(&series.name, spot.x, spot.y, spot.ci95, "measured"));
        }
        self.marks.iter().for_each(|mark| line(&mark.series, mark.x, mark.y, None, "paper"));
        text
    }
}
