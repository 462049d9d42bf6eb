//! All outcomes in one page of HTML that needs nothing beside it.

use crate::cell::{Row, number};
use crate::claim::Claim;
use crate::outcome::{Outcome, Sensitivity};
use crate::plot::svg;
use minijinja::{Environment, Value, context};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");

/// The page. `command` is what makes it again; `version` is the program's.
pub fn html(outcomes: &[Outcome], command: &str, version: &str) -> String {
    let mut templates = Environment::new();
    templates.add_template("page.html", PAGE).expect("the template is valid");
    let page = templates.get_template("page.html").expect("it was just added");
    let sections: Vec<_> = outcomes.iter().map(section).collect();
    let claims: Vec<&Claim> = outcomes.iter().flat_map(|outcome| &outcome.claims).collect();
    page.render(context! {
        style => Value::from_safe_string(STYLE.to_owned()),
        sections,
        is_own => outcomes.iter().all(|outcome| outcome.subject.paper == "own"),
        command,
        version,
        claims => claims.len(),
        hold => claims.iter().filter(|claim| claim.holds).count(),
    })
    .expect("the template fits what it is given")
}

fn section(outcome: &Outcome) -> Value {
    let charts: Vec<Value> = outcome.charts.iter().map(|chart| Value::from_safe_string(svg(chart))).collect();
    context! {
        id => &outcome.subject.id,
        anchor => outcome.subject.id.replace('.', "-"),
        title => &outcome.subject.title,
        paper => &outcome.subject.paper,
        source => &outcome.provenance.source,
        description => &outcome.provenance.description,
        notes => &outcome.notes,
        charts,
        claims => outcome.claims.iter().map(shown_claim).collect::<Vec<_>>(),
        hold => outcome.claims.iter().filter(|claim| claim.holds).count(),
        table => table(&outcome.rows),
        assumptions => outcome.assumptions.iter().map(|assumed| context! {
            name => &assumed.name, value => assumed.value.to_string(), why => &assumed.why,
        }).collect::<Vec<_>>(),
        sensitivity => sensitivity(&outcome.sensitivity),
        simulated_hours => number(outcome.effort.simulated_s / 3600.0),
        events => outcome.effort.events,
        seeds => if outcome.extent.seeds == 1 {
            format!("seed {}", outcome.effort.seed)
        } else {
            format!("seeds {} to {}", outcome.effort.seed, outcome.effort.seed.wrapping_add(outcome.extent.seeds - 1))
        },
        quick => outcome.extent.quick,
        command => command(outcome),
    }
}

/// The command that makes this experiment's figures again.
pub fn command(outcome: &Outcome) -> String {
    format!("{} --plot", outcome.provenance.command)
}

fn shown_claim(claim: &Claim) -> Value {
    let interval = claim.measured_ci95.map_or(String::new(), |half| format!(" ±{}", number(half)));
    context! {
        what => &claim.what,
        paper => claim.paper.map_or("–".to_owned(), number),
        measured => number(claim.measured) + &interval,
        band => format!("{} to {}", number(claim.low), number(claim.high)),
        holds => claim.holds,
    }
}

fn table(rows: &[Row]) -> Value {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(Row::cells) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let cell = |row: &Row, name: &str| {
        let cell = row.get(name);
        let is_number = cell.is_some_and(|cell| cell.number().is_some());
        context! { text => cell.map_or(String::new(), crate::cell::Cell::text), number => is_number }
    };
    let is_number =
        |name: &str| rows.iter().filter_map(|row| row.get(name)).all(|cell| cell.number().is_some());
    let heading = |name: &str| context! { text => name.replace('_', " "), number => is_number(name) };
    let line = |row: &Row| names.iter().map(|name| cell(row, name)).collect::<Vec<_>>();
    context! {
        names => names.iter().map(|name| heading(name)).collect::<Vec<_>>(),
        rows => rows.iter().map(line).collect::<Vec<_>>(),
    }
}

/// A line for each other value of an assumption, a column for each claim.
fn sensitivity(all: &[Sensitivity]) -> Value {
    let Some(first) = all.first() else { return Value::UNDEFINED };
    let line = |tried: &Sensitivity| {
        let name = if tried.assumption.is_empty() {
            "as assumed".to_owned()
        } else {
            format!("{} = {}", tried.assumption, tried.value)
        };
        let cells = tried
            .claims
            .iter()
            .map(|claim| context! { text => number(claim.measured), holds => claim.holds });
        context! { name => name, cells => cells.collect::<Vec<_>>() }
    };
    context! {
        claims => first.claims.iter().map(|claim| claim.what.clone()).collect::<Vec<_>>(),
        lines => all.iter().map(line).collect::<Vec<_>>(),
    }
}
