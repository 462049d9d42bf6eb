//! The driver that plans what comes together with all that waits.

use super::Server;
use super::controller::Controller;
use super::outcome::{Id, Responses};
use reads::distribute::retrieval::{Disk, Fairness, Move, Plan, Request, Waiting};

pub(super) struct Adaptive {
    plan: Plan,
    /// The request of each bucket that waits, by its number.
    of: Vec<Id>,
    asked: Vec<Waiting>,
    moves: Vec<Move>,
    moved: u64,
    lately: Lately,
}

/// What planning took lately, and for how many buckets.
#[derive(Clone, Copy, Debug, Default)]
struct Lately {
    took_ns: f64,
    buckets: f64,
}

impl Lately {
    /// What planning so many buckets is expected to take: the mean of a bucket, since a request's cost is nearly proportional to its size.
    fn expected_ns(&self, buckets: usize) -> u64 {
        if self.buckets > 0.0 { (self.took_ns / self.buckets * buckets as f64) as u64 } else { 0 }
    }

    fn add(&mut self, took_ns: u64, buckets: usize) {
        self.took_ns = self.took_ns * (1.0 - FORGOTTEN) + took_ns as f64;
        self.buckets = self.buckets * (1.0 - FORGOTTEN) + buckets as f64;
    }
}

/// What was seen lately counts less by this part with each plan.
const FORGOTTEN: f64 = 1.0 / 64.0;

impl Adaptive {
    pub(super) fn new(access_ns: &[u64], fairness: Fairness) -> Adaptive {
        let disk = |access_ns: &u64| Disk { free_ns: 0, access_ns: *access_ns, queue: 0 };
        let disks: Vec<Disk> = access_ns.iter().map(disk).collect();
        Adaptive {
            plan: Plan::new(&disks, fairness),
            of: Vec::new(),
            asked: Vec::new(),
            moves: Vec::new(),
            moved: 0,
            lately: Lately::default(),
        }
    }

    /// All that begins before this time begins.
    fn advance(&mut self, until_ns: u64, responses: &mut Responses) {
        let begins = |plan: &Plan, disk: u32| plan.begins_ns(disk).is_some_and(|at_ns| at_ns < until_ns);
        let due: Vec<u32> = self.plan.disks_with_waiting().filter(|disk| begins(&self.plan, *disk)).collect();
        for disk in due {
            while begins(&self.plan, disk) {
                let (bucket, arrives_ns, _) = self.plan.begin(disk).expect("one begins");
                responses.arrives(self.of[bucket.index()], arrives_ns);
            }
        }
    }
}

impl Server for Adaptive {
    fn ask(
        &mut self,
        now_ns: u64,
        id: Id,
        request: &Request,
        controller: &mut Controller<'_, '_>,
        responses: &mut Responses,
    ) {
        let begins_ns = controller.begins_ns(now_ns);
        // What begins sooner than planning is expected to take stays where it is.
        let from_ns = begins_ns + self.lately.expected_ns(request.len());
        self.advance(from_ns, responses);
        let Adaptive { plan, asked, moves, .. } = self;
        let done_ns = controller.plan(now_ns, || {
            let looks = plan.looks();
            plan.ask(request, from_ns, asked, moves);
            plan.looks() - looks
        });
        for bucket in &self.asked {
            self.of.resize(self.of.len().max(bucket.index() + 1), id);
            self.of[bucket.index()] = id;
        }
        self.plan.begin_from(done_ns, &self.asked);
        self.lately.add(done_ns - begins_ns, request.len());
        self.moved += self.moves.len() as u64;
        self.moves.clear();
    }

    fn finish(&mut self, _: &mut Controller<'_, '_>, responses: &mut Responses) {
        self.advance(u64::MAX, responses);
    }

    fn moves(&self) -> u64 {
        self.moved
    }
}
