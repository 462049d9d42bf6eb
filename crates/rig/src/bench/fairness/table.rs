//! Tables for people, 80 columns wide.

use super::super::demand::{self, Demand};
use super::killed::Killed;
use super::quiet::Quiet;
use super::rates::{LIMITED, RESERVED, Rates};
use super::shares::{Server, Shares};
use super::{PLACES, Results};

pub(super) fn print(results: &Results, demands: &[Demand]) {
    if !results.shares.is_empty() {
        println!("\nThree greedy streams on three bricks through two gateways; none is on all bricks.");
        println!("Requests a second (part of all; p50 ms). Reads of 4 KiB.\n");
        println!(
            "{:<9} {:<12} {:>18} {:>18} {:>18}",
            "disks", "sharing", "100, depth 64", "200, depth 2x16", "400, depth 2x4"
        );
        results.shares.iter().for_each(print_shares);
        println!("{:<22} {:>18} {:>18} {:>18}", "due by weight", "(14%)", "(29%)", "(57%)");
        if results.shares.iter().any(|shares| matches!(shares.server, Server::Ceph { .. })) {
            println!("(Ceph has no weights by client. Its OSDs store on files, with caches as small as");
            println!("those of bricks; its clients reach OSDs without gateways.)");
        }
    }
    results.killed.iter().for_each(print_killed);
    results.rates.iter().for_each(print_rates);
    if !results.quiet.is_empty() {
        print_quiet(&results.quiet);
    }
    demand::print(demands);
}

fn print_shares(shares: &Shares) {
    let all = shares.all();
    let got = shares
        .got
        .iter()
        .map(|got| format!("{:>6.0} ({:>2.0}%; {:>4.1})", got.rate, got.rate / all * 100.0, got.p50_ms));
    let how = match &shares.server {
        Server::Brickwork { places: None } => "no streams".to_owned(),
        Server::Brickwork { places: Some(places) } => format!("{places} places"),
        Server::Ceph { version } => format!("Ceph {version}"),
    };
    let got: Vec<String> = got.map(|text| format!("{text:>18}")).collect();
    println!("{:<9} {how:<12} {}", shares.disk.name(), got.join(" "));
}

fn print_killed(killed: &Killed) {
    println!("\nThree greedy streams on three copies, 100:200:400; 70% reads of 4 KiB. A brick is");
    println!("killed, and its blocks are rebuilt onto another. Requests a second (part of all");
    println!("units of cost that bricks charged, which is what is shared).\n");
    println!("{:<21} {:>5} {:>14} {:>14} {:>14} {:>7}", "", "s", "small", "medium", "large", "error");
    for phase in &killed.phases {
        let all: f64 = phase.units.iter().sum();
        let got = phase.rates.iter().zip(&phase.units);
        let got: Vec<String> = got
            .map(|(rate, units)| format!("{:>14}", format!("{rate:.0} ({:.1}%)", units / all * 100.0)))
            .collect();
        let seconds = phase.until_s - phase.from_s;
        println!("{:<21} {seconds:>5.1} {} {:>6.1}%", phase.name, got.join(" "), phase.error() * 100.0);
    }
    let (worst, mean) = killed.errors();
    println!(
        "in windows of 5 s, from 1 s after it was left out: error {:.1}% at worst, {:.1}% in the mean",
        worst * 100.0,
        mean * 100.0
    );
}

fn print_rates(rates: &Rates) {
    println!("\nA stream of depth 32 beside one of depth 256 (requests a second of 4 KiB).\n");
    println!("{:<50} {:>9} {:>9}", "", "own", "other");
    let line = |what: &str, [own, other]: [f64; 2]| println!("{what:<50} {own:>9.0} {other:>9.0}");
    line("by weight alone, 1:1000", rates.plain);
    line(&format!("{RESERVED} are reserved"), rates.reserved);
    line(&format!("at most {LIMITED}; alone"), [rates.limited, 0.0]);
    line(&format!("at most {LIMITED}; weights 1000:1000"), rates.beside_limited);
    println!(
        "most in any second, of what is limited: {} alone, {} beside the other",
        rates.limited_most, rates.beside_most
    );
}

fn print_quiet(quiet: &[Quiet]) {
    println!("\nA stream that reads 90 times a second, beside one that has 64 reads under way.");
    println!(
        "(A disk has {} places unless set; the other situations have {PLACES}.)\n",
        wire::StreamTable::PLACES
    );
    println!("{:<24} {:>8} {:>8} {:>14}", "", "p50 ms", "p99 ms", "greedy reads/s");
    for one in quiet {
        println!("{:<24} {:>8.1} {:>8.1} {:>14.0}", one.how, one.p50_ms, one.p99_ms, one.greedy);
    }
}
