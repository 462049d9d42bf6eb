//! The driver that plans what comes together with all that waits.

use super::Server;
use super::allocation::Array;
use super::controller::Controller;
use super::outcome::{Id, Responses};
use proto::distribute::retrieval::{Disk, Fairness, Move, Plan, Request, Waiting};

pub(super) struct Adaptive {
    plan: Plan,
    /// The request of each bucket that waits, by its number.
    of: Vec<Id>,
    asked: Vec<Waiting>,
    moves: Vec<Move>,
    moved: u64,
    /// What planning takes a bucket, as it was seen; the greatest that was seen lately.
    bucket_ns: f64,
}

/// What was seen lately counts less by this part with each plan.
const FORGOTTEN: f64 = 1.0 / 64.0;

impl Adaptive {
    pub(super) fn new(array: &Array, fairness: Fairness) -> Adaptive {
        let disk = |access_ns: &u64| Disk { free_ns: 0, access_ns: *access_ns, queue: 0 };
        let disks: Vec<Disk> = array.access_ns.iter().map(disk).collect();
        Adaptive {
            plan: Plan::new(&disks, fairness),
            of: Vec::new(),
            asked: Vec::new(),
            moves: Vec::new(),
            moved: 0,
            bucket_ns: 0.0,
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
        // What begins sooner than planning takes stays where it is.
        let from_ns = begins_ns + (self.bucket_ns * request.len() as f64) as u64;
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
        let bucket_ns = (done_ns - begins_ns) as f64 / request.len() as f64;
        self.bucket_ns = bucket_ns.max(self.bucket_ns * (1.0 - FORGOTTEN));
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
