//! What a fair queue costs a request: that many streams wait all the time, a request of each comes whenever one of it leaves.
//!
//! ```text
//! cargo bench -p brickwork-reads fair
//! ```

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod filter;

use base::{StreamId, Time};
use core::time::Duration;
use rules::fair::{Discipline, Entry, Ledger, Order, Share, Ticket};
use std::time::Instant;
use wire::Service;

const REQUESTS: u64 = 2_000_000;
const BRICKS: u64 = 3;

fn main() {
    if !filter::is_asked_for("fair") {
        return;
    }
    println!("nanoseconds a request: to be charged by a gateway, to wait, and to leave");
    println!("{:>8}  {:>8}  {:>8}", "streams", "arrival", "shares");
    for streams in [1, 10, 1_000, 10_000] {
        let [arrival, shares] = [Order::Arrival, Order::FAIR].map(|order| cost_ns(order, streams));
        println!("{streams:>8}  {arrival:>8.0}  {shares:>8.0}");
    }
}

/// A queue in which these streams wait, and the gateway that asks for them.
struct Bench {
    queue: Box<dyn Discipline>,
    ledger: Ledger<u64>,
    /// Whose each ticket is, in their order.
    asked: Vec<u32>,
}

impl Bench {
    fn ask(&mut self, now: Time, stream: u32) {
        let id = StreamId(stream);
        self.asked.push(stream);
        let ticket = Ticket(self.asked.len() as u64);
        let delay = self.ledger.charge(id, ticket.0 % BRICKS, 9) as u32;
        self.queue.push(now, Entry { ticket, service: Service { stream: id, delay }, cost: 9 });
    }
}

fn cost_ns(order: Order, streams: u32) -> f64 {
    let mut queue = order.discipline();
    let shares = (0..streams).map(|stream| (StreamId(stream), Share::total(1 + stream % 7).with_minimum(1)));
    queue.set_shares(Time::ZERO, &shares.collect());
    let mut bench =
        Bench { queue, ledger: Ledger::default(), asked: Vec::with_capacity(REQUESTS as usize * 2) };
    for stream in (0..4).flat_map(|_| 0..streams) {
        bench.ask(Time::ZERO, stream);
    }
    let began = Instant::now();
    for number in 0..REQUESTS {
        let now = Time::ZERO + Duration::from_micros(number);
        let Ticket(ticket) = bench.queue.pop(now).expect("they wait all the time");
        bench.ask(now, bench.asked[ticket as usize - 1]);
    }
    began.elapsed().as_nanos() as f64 / REQUESTS as f64
}
