//! An outcome for people.

use crate::output;
use lab::cell::{Row, number};
use lab::claim::Claim;
use lab::outcome::{Outcome, Sensitivity};

/// Prints the table, the claims, what they depend on, and how long it took. `id` is the experiment's in the list.
pub(super) fn print(outcome: &Outcome, id: &str) {
    println!("{}: {}", outcome.subject.id, outcome.subject.title);
    println!("{}\n", provenance(outcome));
    print_rows(&outcome.rows);
    if !outcome.claims.is_empty() {
        println!();
        print_claims(&outcome.claims);
    }
    for note in &outcome.notes {
        println!();
        output::print_marked(" ", note);
    }
    if !outcome.assumptions.is_empty() {
        println!("\nAssumed (why: brickwork lab list {id})");
        let assumed: Vec<String> =
            outcome.assumptions.iter().map(|assumed| format!("{}={}", assumed.name, assumed.value)).collect();
        output::print_marked(" ", &assumed.join(" "));
    }
    print_sensitivity(&outcome.sensitivity);
    println!(
        "\n{} simulated hours, {} events, in {:.1} s.",
        number(outcome.effort.simulated_s / 3600.0),
        outcome.effort.events,
        outcome.effort.wall_s
    );
}

fn provenance(outcome: &Outcome) -> String {
    let quick = if outcome.extent.quick { ", quick: a tenth of the length" } else { "" };
    if outcome.extent.seeds == 1 {
        return format!("seed {}{quick}", outcome.effort.seed);
    }
    let last = outcome.effort.seed.wrapping_add(outcome.extent.seeds - 1);
    format!("seeds {} to {last}{quick}; ± is half of a 95% confidence interval", outcome.effort.seed)
}

/// A text is written on one line up to so many characters, where figures have to go to a table of their own anyway.
const TEXT_MAX: usize = 24;

/// Where the columns do not fit beside each other, figures go to several tables, each with all texts.
fn print_rows(rows: &[Row]) {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(Row::cells) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let cells = |name: &&str| rows.iter().filter_map(|row| row.get(name)).collect::<Vec<_>>();
    let is_number = |name: &&str| cells(name).into_iter().all(|cell| cell.number().is_some());
    let texts_of = |name: &&str| {
        let heading = core::iter::once(name.replace('_', " "));
        heading.chain(cells(name).into_iter().map(|cell| cell.text())).collect::<Vec<_>>()
    };
    let longest_word = |name: &&str| output::longest_word(texts_of(name).iter().map(String::as_str));
    let longest = |name: &&str| {
        let longest = texts_of(name).iter().map(|text| text.chars().count()).max().unwrap_or(0);
        longest.min(TEXT_MAX).max(longest_word(name))
    };
    let (numbers, texts): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| is_number(name));
    if numbers.is_empty() || output::fits(names.iter().map(longest_word)) {
        return print_columns(rows, &names);
    }
    let mut begin = 0;
    while begin < numbers.len() {
        let widths = |end: usize| {
            texts.iter().map(longest).chain(numbers[begin..end].iter().map(longest_word)).collect::<Vec<_>>()
        };
        let end = (begin + 1..=numbers.len()).take_while(|end| output::fits(widths(*end))).last();
        let end = end.unwrap_or(begin + 1);
        if begin > 0 {
            println!();
        }
        print_columns(rows, &[&texts[..], &numbers[begin..end]].concat());
        begin = end;
    }
}

fn print_columns(rows: &[Row], names: &[&str]) {
    let headings: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
    let mut table = output::table(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    let is_number =
        |name: &&str| rows.iter().filter_map(|row| row.get(name)).all(|cell| cell.number().is_some());
    let numbers: Vec<usize> =
        names.iter().enumerate().filter(|(_, name)| is_number(name)).map(|(at, _)| at).collect();
    output::align_right(&mut table, &numbers);
    for row in rows {
        table.add_row(names.iter().map(|name| row.get(name).map_or(String::new(), |cell| cell.text())));
    }
    println!("{}", output::render(&table));
}

fn print_claims(claims: &[Claim]) {
    let mut table = output::table(&["claim", "paper", "measured", "band", "holds"]);
    output::align_right(&mut table, &[1, 2, 3]);
    for claim in claims {
        let interval = claim.measured_ci95.map_or(String::new(), |half| format!(" ±{}", number(half)));
        table.add_row([
            claim.what.clone(),
            claim.paper.map_or("-".to_owned(), number),
            number(claim.measured) + &interval,
            format!("{} to {}", number(claim.low), number(claim.high)),
            if claim.holds { "yes".to_owned() } else { "NO".to_owned() },
        ]);
    }
    println!("{}", output::render(&table));
    let hold = claims.iter().filter(|claim| claim.holds).count();
    println!("{hold} of {} hold.", output::count(claims.len() as u64, "claim"));
}

/// Which claims another assumption would move: a line for each that changes by more than its band is wide by a tenth,
/// or whose verdict changes.
fn print_sensitivity(all: &[Sensitivity]) {
    let Some((plain, others)) = all.split_first() else { return };
    println!("\nUnder other assumptions (a tenth of the length), where a claim changes visibly");
    let mut table = output::table(&["assumption", "claim", "measured", "holds"]);
    output::align_right(&mut table, &[2]);
    let mut unmoved = Vec::new();
    for other in others {
        let name = format!("{}={}", other.assumption, other.value);
        let moved = plain.claims.iter().zip(&other.claims).filter(|(plain, other)| is_moved(plain, other));
        let lines: Vec<_> = moved.collect();
        if lines.is_empty() {
            unmoved.push(name);
            continue;
        }
        for (plain, claim) in lines {
            let measured = format!("{} → {}", number(plain.measured), number(claim.measured));
            table.add_row([name.as_str(), &claim.what, &measured, if claim.holds { "yes" } else { "NO" }]);
        }
    }
    if table.row_count() > 0 {
        println!("{}", output::render(&table));
    }
    if !unmoved.is_empty() {
        output::print_marked(" ", &format!("No claim changes visibly with {}.", unmoved.join(", ")));
    }
}

fn is_moved(plain: &Claim, other: &Claim) -> bool {
    let width = plain.high - plain.low;
    plain.holds != other.holds || (plain.measured - other.measured).abs() > width / 10.0
}
