//! A storage array as the paper on continuous retrieval has it: a controller that plans, and disks that serve buckets in the order in
//! which they come, each in a constant time. There are no machines here: [`reads::distribute::retrieval`] is what decides, and it is
//! what gateways decide with as well.
//!
//! Reading order: [`Array`] (disks, and who holds what), [`Driver`] (when choices are made, and what they see), [`run`], [`Outcome`];
//! [`replay`], by which the paper's [`examples`] are run. [`theory`] is what the paper proves.

mod adaptive;
mod allocation;
mod controller;
pub mod examples;
mod immediate;
mod outcome;
pub mod theory;

pub use allocation::{Allocation, Array, Extra};
pub use controller::{Costs, Planning};
pub use outcome::Outcome;

use controller::Controller;
use outcome::Responses;
use reads::distribute::retrieval::{Choice, Fairness, Request};

/// When choices are made, and what they see.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Driver {
    /// Each request is served by an idle array: no request meets another. For the time that service alone takes.
    Discrete(Choice),
    /// At once, as if all disks were idle; buckets wait for each other nevertheless.
    Baseline(Choice),
    /// When all disks are idle or so many buckets are gathered.
    Batched { choice: Choice, cap: usize },
    /// At once, with the loads of the disks.
    Conservative(Choice),
    /// At once, together with all that has not begun.
    Adaptive(Fairness),
}

/// A request of a trace: when it comes, and how many buckets it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub at_ns: u64,
    pub buckets: u32,
}

/// Serves requests, which come in the order of their times. Which buckets they ask for follows from `seed`, the same for each driver.
pub fn run(
    array: &Array,
    driver: Driver,
    mut arrivals: impl Iterator<Item = Arrival>,
    planning: &mut Planning<'_>,
    seed: u64,
) -> Outcome {
    let mut holders = array.holders(seed);
    let next = |request: &mut Request| {
        let Arrival { at_ns, buckets } = arrivals.next()?;
        request.clear();
        (0..buckets.max(1)).for_each(|_| holders.draw(request));
        Some(at_ns)
    };
    let mut controller = Controller::new(planning);
    let mut server = server(&array.access_ns, driver, seed);
    let responses = serve(server.as_mut(), &mut controller, next);
    responses.outcome(&controller, server.moves())
}

/// Serves requests whose buckets lie where they say, each with the time at which it comes. Gives when the last bucket of each arrives.
pub fn replay(
    access_ns: &[u64],
    driver: Driver,
    requests: &[(u64, Request)],
    planning: &mut Planning<'_>,
    seed: u64,
) -> Vec<u64> {
    let mut requests = requests.iter();
    let next = |request: &mut Request| {
        let (at_ns, given) = requests.next()?;
        request.clone_from(given);
        Some(*at_ns)
    };
    let mut controller = Controller::new(planning);
    serve(server(access_ns, driver, seed).as_mut(), &mut controller, next).last_ns()
}

/// Serves requests until there are no more: `next` writes what is asked, and gives when.
fn serve(
    server: &mut dyn Server,
    controller: &mut Controller<'_, '_>,
    mut next: impl FnMut(&mut Request) -> Option<u64>,
) -> Responses {
    let mut request = Request::default();
    let mut responses = Responses::default();
    while let Some(at_ns) = next(&mut request) {
        let id = responses.asked(at_ns, request.accesses());
        server.ask(at_ns, id, &request, controller, &mut responses);
    }
    server.finish(controller, &mut responses);
    responses
}

/// Disks with what waits for them, under one driver.
trait Server {
    /// A request comes. Completions that are known by then are told.
    fn ask(
        &mut self,
        now_ns: u64,
        id: outcome::Id,
        request: &Request,
        controller: &mut Controller<'_, '_>,
        responses: &mut Responses,
    );

    /// No request comes any more.
    fn finish(&mut self, controller: &mut Controller<'_, '_>, responses: &mut Responses);

    /// How many buckets were moved.
    fn moves(&self) -> u64 {
        0
    }
}

fn server(access_ns: &[u64], driver: Driver, seed: u64) -> Box<dyn Server> {
    match driver {
        Driver::Discrete(choice) => {
            Box::new(immediate::Immediate::new(access_ns, choice, immediate::Sees::Nobody, seed))
        }
        Driver::Baseline(choice) => {
            Box::new(immediate::Immediate::new(access_ns, choice, immediate::Sees::Idle, seed))
        }
        Driver::Conservative(choice) => {
            Box::new(immediate::Immediate::new(access_ns, choice, immediate::Sees::Loads, seed))
        }
        Driver::Batched { choice, cap } => Box::new(immediate::Batched::new(access_ns, choice, cap, seed)),
        Driver::Adaptive(fairness) => Box::new(adaptive::Adaptive::new(access_ns, fairness)),
    }
}

#[cfg(test)]
mod tests;
