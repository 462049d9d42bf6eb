//! What people and programs read: tables for 80 columns, JSON, progress bars.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Something that was printed could not be written, for another reason than that nobody reads it.
static IS_INCOMPLETE: AtomicBool = AtomicBool::new(false);

// The standard macros of these names panic when nobody reads the output any more: a verb that had done its work, or was in the
// middle of it, would end with 101. In this crate they print what can be printed, and the verb goes on to its own end.

/// Prints a line to standard output.
macro_rules! println {
    () => { $crate::output::say(::std::format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::say(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}

/// Prints to standard output.
macro_rules! print {
    ($($text:tt)*) => { $crate::output::say(::std::format_args!($($text)*)) };
}

/// Prints a line to standard error.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::output::complain(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}

/// Prints to standard error.
macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::complain(::std::format_args!($($text)*)) };
}

/// What `println!` of this crate does.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    note(io::stdout().lock().write_fmt(text));
}

/// What `eprintln!` of this crate does. Where nobody can be told of an error there is nothing left to do about it.
pub(crate) fn complain(text: fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Whether all that was printed was written, as far as anybody reads it.
pub(crate) fn is_complete() -> bool {
    note(io::stdout().lock().flush());
    !IS_INCOMPLETE.load(Ordering::Relaxed)
}

fn note(result: io::Result<()>) {
    if result.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
        IS_INCOMPLETE.store(true, Ordering::Relaxed);
    }
}

/// Columns when the terminal does not say how many it has.
const COLUMNS: u16 = 80;

/// A table with these headings, without lines, that fits the terminal.
pub fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(columns());
    table.set_header(headings.iter().map(|heading| heading.to_uppercase()));
    table
}

/// Aligns the columns at these places to the right, as numbers want it.
pub fn align_right(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Prints one JSON value on one line.
pub fn print_json(value: &Value) {
    println!("{value}");
}

/// From now on the process ends when nobody reads what it prints any more, as in `brickwork lab list | head`. Not for
/// what has peers or children: it would end with them.
pub fn end_with_reader() {
    // SAFETY: the default action is no handler, so none can run at the wrong moment.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// As it was before [`end_with_reader`]: while there is a peer whose connection may break.
pub fn outlive_reader() {
    // SAFETY: ignoring is no handler either.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// A progress bar on standard error; silent unless that is a terminal.
pub fn progress(total: u64, what: &str, bytes: bool) -> ProgressBar {
    let counter = if bytes { "{bytes}/{total_bytes} {bytes_per_sec}" } else { "{pos}/{len} {eta} left" };
    let template = format!("{{msg:28}} [{{bar:24}}] {counter}");
    let style = ProgressStyle::with_template(&template).expect("the template is valid").progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(Some(total), target()).with_style(style);
    bar.set_message(what.to_owned());
    bar
}

/// Several progress bars on standard error; silent unless that is a terminal.
pub fn progresses(silent: bool) -> MultiProgress {
    MultiProgress::with_draw_target(if silent { ProgressDrawTarget::hidden() } else { target() })
}

/// One of several progress bars, of bytes compared or checked.
pub fn progress_of(total_bytes: u64) -> ProgressBar {
    let template = "{msg:34} [{bar:16}] {percent:>3}% {eta:>4} left";
    let style = ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ");
    ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::hidden()).with_style(style)
}

/// `count` with its noun, in the plural where it has to be.
pub fn count(count: u64, noun: &str) -> String {
    let plural = if noun.ends_with('s') { "es" } else { "s" };
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}{plural}") }
}

/// A table as text, without blanks at the ends of lines.
pub fn render(table: &Table) -> String {
    let mut table = table.clone();
    keep_words_whole(&mut table);
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// On each side of what stands in a column.
const PADDING: u16 = 1;

/// The length of the longest word of several texts.
pub fn longest_word<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.flat_map(str::split_whitespace).map(|word| word.chars().count()).max().unwrap_or(0)
}

/// Whether columns of these widths fit beside each other.
pub fn fits(widths: impl IntoIterator<Item = usize>) -> bool {
    let padding = 2 * usize::from(PADDING);
    widths.into_iter().map(|width| width + padding).sum::<usize>() <= usize::from(columns())
}

/// No column is narrower than its longest word, as long as there is room for all of these.
fn keep_words_whole(table: &mut Table) {
    let mut widths = vec![0; table.column_count()];
    for row in table.header().into_iter().chain(table.row_iter()) {
        for (width, cell) in widths.iter_mut().zip(row.cell_iter()) {
            *width = longest_word([cell.content().as_str()].into_iter()).max(*width);
        }
    }
    if !fits(widths.iter().copied()) {
        return;
    }
    for (column, width) in table.column_iter_mut().zip(widths) {
        if column.constraint().is_none() {
            let width = width as u16 + 2 * PADDING;
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
        }
    }
}

/// Prints `text` behind `mark`, wrapped at the terminal's width, further lines under the first one.
pub fn print_marked(mark: &str, text: &str) {
    let (width, mut line) = (usize::from(columns()), mark.to_owned());
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > width {
            println!("{line}");
            line = " ".repeat(mark.len());
        }
        line.push(' ');
        line.push_str(word);
    }
    println!("{line}");
}

/// Prints `text` behind `head`, on one line. On a terminal it is wrapped, further lines under the first one.
pub fn print_entry(head: &str, text: &str) {
    match io::stdout().is_terminal() {
        true => print_marked(head, text),
        false => println!("{head} {text}"),
    }
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

/// A person's terminal may be wider than 80 columns; a program's pipe is always as wide as 80, so that it repeats.
fn columns() -> u16 {
    let stated = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    stated.unwrap_or(COLUMNS).clamp(40, 200)
}
