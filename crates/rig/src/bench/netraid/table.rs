//! Tables for people, 80 columns wide.

use super::hop::Ends;
use super::load::{Work, Workload};
use super::outcome::{Cost, Outcome};
use super::{Plan, Results};

/// Longer names have a line of their own.
const NAME_COLUMNS: usize = 20;

pub(super) fn print(plan: &Plan, results: &Results) {
    for workload in Workload::ALL {
        let outcomes = results.of(workload);
        println!("\n{}\n{}", title(plan, workload), heading());
        for outcome in &outcomes {
            println!("{}", line(outcome, Ends::of(outcome, &outcomes)));
        }
    }
    let [gateways, bricks] = [results.idle.gateways, results.idle.bricks].map(|part| part * 1000.0);
    println!("\n+-: standard error of ops/s over the turns, in percent. mean, p99: us of latency.");
    println!("client, gateway, brick: us of processor a request, by attach, gateways, bricks;");
    println!("at rest, gateways take {gateways:.0} ms of processor a second, bricks {bricks:.0}.");
    println!("hop: 0% is the mean latency under gw, 100% that under direct.");
}

fn title(plan: &Plan, workload: Workload) -> String {
    let work = match workload.work {
        Work::Write => "writes",
        Work::Read => "reads",
    };
    let clients = if workload.clients == 1 { "1 client" } else { &format!("{} clients", workload.clients) };
    let disks = if plan.ram { ", disks in memory" } else { "" };
    format!("{}{disks}: 4 KiB random {work}, {clients}", plan.layout)
}

fn heading() -> String {
    row(["protocol", "ops/s", "+-", "mean", "p99", "client", "gateway", "brick", "hop"].map(str::to_owned))
}

fn line(outcome: &Outcome, ends: Option<Ends<'_>>) -> String {
    let name = outcome.protocol.to_string();
    let (above, name) =
        if name.len() > NAME_COLUMNS { (format!("{name}\n"), String::new()) } else { (String::new(), name) };
    let (iops, Cost { client_us, gateway_us, brick_us }) = (outcome.iops(), outcome.cost());
    let error = iops.error / iops.mean * 100.0;
    let hop = ends.and_then(|ends| ends.of_latency(outcome));
    let cells = [
        name,
        format!("{:.0}", iops.mean),
        if error.is_nan() { "-".to_owned() } else { format!("{error:.0}") },
        format!("{:.0}", outcome.mean_us()),
        format!("{:.0}", outcome.percentile_us(0.99)),
        format!("{client_us:.0}"),
        format!("{gateway_us:.0}"),
        format!("{brick_us:.0}"),
        hop.map_or("-".to_owned(), |hop| format!("{:.0}%", hop * 100.0)),
    ];
    above + &row(cells)
}

fn row([name, iops, error, mean, p99, client, gateway, brick, hop]: [String; 9]) -> String {
    format!(
        "{name:<NAME_COLUMNS$} {iops:>7} {error:>3} {mean:>7} {p99:>7} {client:>6} {gateway:>7} {brick:>6} {hop:>7}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::load::{Latencies, Seen};
    use super::super::outcome::{Spent, Turn};
    use super::*;
    use wire::Protocol;

    #[test]
    fn rows_fit_80_columns_whatever_was_measured() {
        for protocol in Protocol::all() {
            let mut outcome = Outcome::new(Workload { work: Work::Write, clients: 8 }, protocol);
            let seen = Seen { requests: 1, iops: 1.5e6, mean_us: 1.2e6, latencies: Latencies::default() };
            let spent = Spent { clients_us: 123_456, gateways_us: 1_234_567, bricks_us: 123_456 };
            outcome.turns.push(Turn { seen, spent });
            assert!(line(&outcome, None).lines().all(|line| line.len() <= 80), "{}", line(&outcome, None));
        }
        assert!(heading().len() <= 80);
    }
}
