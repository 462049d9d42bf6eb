//! A picture as SVG: frame and axes, then figures, then the paper's marks on top, then the legend beneath.

use super::chart::{Axis, Chart, Plot, Series};
use super::scale::Scale;
use super::style::{self, Shape, Style};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const TOP: f64 = 44.0;
const PLOT_HEIGHT: f64 = 320.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 22.0;
/// Between the horizontal axis and the legend: tick labels and the axis's name.
const BELOW: f64 = 62.0;
const LEGEND_LINE: f64 = 22.0;
const INK: &str = "#222222";
const FAINT: &str = "#dddddd";
/// A further line of a label that is broken.
const LABEL_LINE: f64 = 15.0;
/// What a figure of three digits and a point is wide.
const FIGURE_WIDTH: f64 = 36.0;
/// What a character of the legend is wide, on the safe side.
const CHARACTER: f64 = 8.2;
/// The same of the title.
const TITLE_CHARACTER: f64 = 9.4;
const TITLE_LINE: f64 = 20.0;
/// Curves that are nowhere farther apart than this part of the axis are seen as one.
const SEEN_APART: f64 = 0.004;

/// The picture as a file's content.
pub fn svg(chart: &Chart) -> String {
    let legend = legend(chart);
    let bottom = TOP + PLOT_HEIGHT;
    let below = BELOW + LABEL_LINE * extra_label_lines(chart) as f64;
    let title = lines_of(&chart.title, WIDTH - 2.0 * RIGHT, TITLE_CHARACTER);
    let lower = TITLE_LINE * (title.len() - 1) as f64;
    let height = lower + bottom + below + LEGEND_LINE * legend.lines as f64;
    let mut heading = Page::default();
    for (line, text) in title.iter().enumerate() {
        heading.text(WIDTH / 2.0, 25.0 + TITLE_LINE * line as f64, "middle", "16", "bold", text);
    }
    let mut page = Page::default();
    let y = vertical(chart);
    draw_vertical(&mut page, &y, &chart.y);
    match &chart.plot {
        Plot::Lines { x, series } => draw_lines(&mut page, chart, x, series, &y),
        Plot::Bars { groups, series } => draw_bars(&mut page, chart, groups, series, &y),
    }
    let _ = writeln!(
        page.body,
        "<path d=\"M{LEFT} {TOP}V{bottom}H{}\" fill=\"none\" stroke=\"{INK}\"/>",
        WIDTH - RIGHT
    );
    let _ = writeln!(page.body, "<g transform=\"translate(0 {})\">{}</g>", bottom + below, legend.body);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}\
         <g transform=\"translate(0 {lower})\">\n{}</g></svg>\n",
        escaped(&chart.title),
        heading.body,
        page.body
    )
}

#[derive(Default)]
struct Page {
    body: String,
}

impl Page {
    fn text(&mut self, x: f64, y: f64, anchor: &str, size: &str, weight: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" font-weight=\"{weight}\" \
             fill=\"{INK}\">{text}</text>"
        );
    }

    fn line(&mut self, from: [f64; 2], to: [f64; 2], colour: &str, width: f64) {
        let _ = writeln!(
            self.body,
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
            from[0], from[1], to[0], to[1]
        );
    }

    /// A bar's figure at its foot, where no mark of the paper covers it; above it where it is too low for that. It stands
    /// upright in a narrow bar.
    fn figure_of_bar(&mut self, x: f64, [top, zero]: [f64; 2], bar_width: f64, figure: f64) {
        let is_upright = bar_width < FIGURE_WIDTH;
        let (rise, room) = if is_upright { (4.0, 44.0) } else { (9.0, 30.0) };
        let (y, fill) = if zero - top > room { (zero - rise, "#ffffff") } else { (top - rise - 3.0, INK) };
        let turn = if is_upright {
            format!(" transform=\"rotate(-90 {0:.1} {y:.1})\"", x + 4.0)
        } else {
            String::new()
        };
        let (x, anchor) = if is_upright { (x + 4.0, "start") } else { (x, "middle") };
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"11\" font-weight=\"bold\" \
             fill=\"{fill}\"{turn}>{}</text>",
            crate::cell::short(figure)
        );
    }

    /// A vertical bar with short ends, from `low` to `high`.
    /// What goes beyond the axes ends there.
    fn whisker(&mut self, x: f64, low: f64, high: f64) {
        let [low, high] = [low, high].map(|y| y.clamp(TOP, TOP + PLOT_HEIGHT));
        let _ = writeln!(
            self.body,
            "<path d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8\" stroke=\"{INK}\" \
             stroke-width=\"1\"/>",
            x - 4.0,
            x - 4.0
        );
    }
}

fn vertical(chart: &Chart) -> Scale {
    let spots = chart.series().iter().flat_map(|series| &series.spots);
    let figures = spots.flat_map(|spot| {
        let half = spot.ci95.unwrap_or(0.0);
        [spot.y - half, spot.y + half].into_iter().filter(move |y| half == 0.0 || *y > 0.0)
    });
    let values = figures.chain(chart.marks.iter().map(|mark| mark.y));
    Scale::of(values, chart.y.begins, 5.0, [TOP + PLOT_HEIGHT, TOP])
}

fn draw_vertical(page: &mut Page, scale: &Scale, axis: &Axis) {
    for (y, text) in scale.ticks() {
        page.line([LEFT, y], [WIDTH - RIGHT, y], FAINT, 1.0);
        page.text(LEFT - 8.0, y + 4.5, "end", "13", "normal", &text);
    }
    let (x, y) = (18.0, TOP + PLOT_HEIGHT / 2.0);
    let _ = writeln!(
        page.body,
        "<text transform=\"translate({x} {y}) rotate(-90)\" text-anchor=\"middle\" font-size=\"14\" \
         fill=\"{INK}\">{}</text>",
        escaped(&axis.text())
    );
}

fn draw_lines(page: &mut Page, chart: &Chart, axis: &Axis, series: &[Series], y: &Scale) {
    let figures = series.iter().flat_map(|series| series.spots.iter().map(|spot| spot.x));
    let values = figures.chain(chart.marks.iter().map(|mark| mark.x));
    let x = Scale::of(values, axis.begins, 8.0, [LEFT, WIDTH - RIGHT]);
    let bottom = TOP + PLOT_HEIGHT;
    for (place, text) in x.ticks() {
        page.line([place, bottom], [place, bottom + 5.0], INK, 1.0);
        // A long figure at the end of the axis would be cut.
        let half = text.chars().count() as f64 * CHARACTER / 2.0;
        let (at, anchor) = if place + half > WIDTH { (WIDTH - 4.0, "end") } else { (place, "middle") };
        page.text(at, bottom + 20.0, anchor, "13", "normal", &text);
    }
    page.text((LEFT + WIDTH - RIGHT) / 2.0, bottom + 44.0, "middle", "14", "normal", &axis.text());
    for (at, series) in series.iter().enumerate() {
        draw_curve(page, series, style::of(&series.name, at), &x, y);
    }
    for mark in &chart.marks {
        let at = series.iter().position(|series| series.name == mark.series).unwrap_or(0);
        let colour = style::of(&mark.series, at).colour;
        page.body += &diamond(x.place(mark.x), y.place(mark.y), colour);
    }
}

fn draw_curve(page: &mut Page, series: &Series, style: Style, x: &Scale, y: &Scale) {
    let places: Vec<[f64; 2]> = series.spots.iter().map(|spot| [x.place(spot.x), y.place(spot.y)]).collect();
    let points: Vec<String> = places.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        page.body,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-dasharray=\"{}\" \
         stroke-linejoin=\"round\"/>",
        points.join(" "),
        style.colour,
        style.width,
        dashes(style)
    );
    for (spot, [left, top]) in series.spots.iter().zip(&places) {
        if let Some(half) = spot.ci95 {
            page.whisker(*left, y.place(spot.y - half), y.place(spot.y + half));
        }
        // Where figures are dense, shapes would only hide the curve.
        if places.len() <= 40 {
            page.body += &shape(style, *left, *top);
        }
    }
}

fn draw_bars(page: &mut Page, chart: &Chart, groups: &[String], series: &[Series], y: &Scale) {
    let group_width = (WIDTH - RIGHT - LEFT) / groups.len().max(1) as f64;
    let bar_width = (group_width * 0.8 / series.len().max(1) as f64).min(70.0);
    let middle = |group: f64| LEFT + group_width * (group + 0.5);
    let left = |group: f64, at: usize| middle(group) + bar_width * (at as f64 - series.len() as f64 / 2.0);
    for (at, name) in groups.iter().enumerate() {
        for (line, part) in label_lines(name, group_width).iter().enumerate() {
            let y = TOP + PLOT_HEIGHT + 22.0 + LABEL_LINE * line as f64;
            page.text(middle(at as f64), y, "middle", "13", "normal", part);
        }
    }
    for (at, series) in series.iter().enumerate() {
        let style = style::of(&series.name, at);
        for spot in &series.spots {
            let (top, zero, x) = (y.place(spot.y), y.place(0.0), left(spot.x, at) + 1.0);
            let _ = writeln!(
                page.body,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                bar_width - 2.0,
                (zero - top).max(0.0),
                style.colour
            );
            if let Some(half) = spot.ci95 {
                page.whisker(x + bar_width / 2.0, y.place(spot.y - half), y.place(spot.y + half));
            }
            page.figure_of_bar(x + bar_width / 2.0 - 1.0, [top, zero], bar_width, spot.y);
        }
    }
    for mark in &chart.marks {
        if let Some(at) = series.iter().position(|series| series.name == mark.series) {
            page.body += &diamond(left(mark.x, at) + bar_width / 2.0, y.place(mark.y), INK);
        }
    }
}

/// The label of a group of bars: broken where it is wider than the group.
fn label_lines(name: &str, width: f64) -> Vec<String> {
    lines_of(name, width - 10.0, CHARACTER)
}

/// A text broken after commas and blanks into lines that are no wider, as far as its words allow.
fn lines_of(name: &str, width: f64, character: f64) -> Vec<String> {
    let fits = |text: &str| text.trim_end().chars().count() as f64 * character <= width;
    let mut lines: Vec<String> = vec![String::new()];
    for word in name.split_inclusive([',', ' ']) {
        let last = lines.last_mut().expect("there is a first line");
        match last.is_empty() || fits(&format!("{last}{word}")) {
            true => last.push_str(word),
            false => lines.push(word.to_owned()),
        }
    }
    lines
}

/// How many lines the longest label of a group of bars has more than one.
fn extra_label_lines(chart: &Chart) -> usize {
    let Plot::Bars { groups, .. } = &chart.plot else { return 0 };
    let width = (WIDTH - RIGHT - LEFT) / groups.len().max(1) as f64;
    groups.iter().map(|name| label_lines(name, width).len() - 1).max().unwrap_or(0)
}

struct Legend {
    body: String,
    lines: usize,
}

/// Names beside samples of their styles, as many in a line as fit.
fn legend(chart: &Chart) -> Legend {
    let bars = matches!(chart.plot, Plot::Bars { .. });
    let mut items: Vec<(String, String)> = chart
        .series()
        .iter()
        .enumerate()
        .map(|(at, series)| {
            let name = match covered(chart, at).filter(|_| !bars) {
                Some(other) => format!("{} (as {other})", series.name),
                None => series.name.clone(),
            };
            (name, legend_sample(style::of(&series.name, at), bars))
        })
        .collect();
    if !chart.marks.is_empty() {
        items.push(("the paper's value".to_owned(), diamond(15.0, 0.0, INK)));
    }
    let mut page = Page::default();
    let (mut x, mut line) = (LEFT, 0);
    for (name, sample) in items {
        let parts = lines_of(&name, WIDTH - LEFT - 44.0, CHARACTER);
        let longest = parts.iter().map(|part| part.chars().count()).max().unwrap_or(0);
        let width = 44.0 + longest as f64 * CHARACTER + 14.0;
        if x > LEFT && x + width > WIDTH {
            (x, line) = (LEFT, line + 1);
        }
        let y = line as f64 * LEGEND_LINE + 4.0;
        let _ = writeln!(page.body, "<g transform=\"translate({x:.1} {y:.1})\">{sample}</g>");
        for (at, part) in parts.iter().enumerate() {
            page.text(x + 38.0, y + 4.5 + LEGEND_LINE * at as f64, "start", "13", "normal", part);
        }
        line += parts.len() - 1;
        x += width;
    }
    Legend { body: page.body, lines: line + 1 }
}

/// An earlier curve under this one, which nobody sees.
fn covered(chart: &Chart, at: usize) -> Option<&str> {
    let (y, mine) = (vertical(chart), &chart.series()[at].spots);
    let is_same = |other: &&Series| {
        other.spots.len() == mine.len()
            && mine.len() > 1
            && other.spots.iter().zip(mine).all(|(one, other)| {
                one.x == other.x && (y.place(one.y) - y.place(other.y)).abs() <= SEEN_APART * PLOT_HEIGHT
            })
    };
    chart.series()[..at].iter().find(is_same).map(|other| other.name.as_str())
}

fn legend_sample(style: Style, bars: bool) -> String {
    if bars {
        return format!("<rect x=\"8\" y=\"-7\" width=\"14\" height=\"14\" fill=\"{}\"/>", style.colour);
    }
    format!(
        "<path d=\"M0 0H30\" stroke=\"{}\" stroke-width=\"{}\" stroke-dasharray=\"{}\"/>{}",
        style.colour,
        style.width,
        dashes(style),
        shape(style, 15.0, 0.0)
    )
}

fn dashes(style: Style) -> &'static str {
    if style.dashes.is_empty() { "none" } else { style.dashes }
}

fn shape(style: Style, x: f64, y: f64) -> String {
    let path = match style.shape {
        Shape::Circle => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", x - 4.0),
        Shape::Square => format!("M{:.1} {:.1}h7v7h-7Z", x - 3.5, y - 3.5),
        Shape::Triangle => format!("M{x:.1} {:.1}l4.5 8h-9Z", y - 5.0),
        Shape::Cross => format!("M{:.1} {:.1}l8 8m0 -8l-8 8", x - 4.0, y - 4.0),
    };
    format!("<path d=\"{path}\" fill=\"{0}\" stroke=\"{0}\" stroke-width=\"1.5\"/>", style.colour)
}

/// The paper's mark: hollow, with a white edge, so that it is seen on top of anything.
fn diamond(x: f64, y: f64, colour: &str) -> String {
    let path = format!("M{x:.1} {:.1}l7 7l-7 7l-7 -7Z", y - 7.0);
    format!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"#ffffff\" stroke-width=\"5\"/>\
         <path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Spot;

    #[test]
    fn titles_are_broken_between_words_and_covered_curves_are_named() {
        let spots =
            |offset: f64| (1..4).map(|x| Spot { x: f64::from(x), y: 100.0 + offset, ci95: None }).collect();
        let series = [("one", 0.0), ("other", 0.1), ("third", 9.0)]
            .map(|(name, offset)| Series { name: name.to_owned(), spots: spots(offset) });
        let title = "Response times while one replica of each pair is slow for a quarter of the run, and then the other";
        let chart = Chart::lines("x", title, Axis::new("x", ""), Axis::new("y", "ms"), series.into());
        let drawn = svg(&chart);
        let texts: Vec<&str> = drawn.lines().filter(|line| line.contains("font-weight=\"bold\"")).collect();
        assert!(
            texts.len() == 2 && texts[0].contains("slow for a") && !texts[0].contains("other</text>"),
            "{texts:?}"
        );
        assert!(drawn.contains("other (as one)") && !drawn.contains("third (as"), "{drawn}");
    }
}
