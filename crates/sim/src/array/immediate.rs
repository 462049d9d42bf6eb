//! Drivers under which a choice is final: what is chosen waits at its disk, in the order of choices. So it is known at once when it
//! arrives.

use super::controller::Controller;
use super::outcome::{Id, Responses};
use super::{Choice, Server};
use reads::distribute::retrieval::{Chooser, Disk, Request};

/// What a choice sees of the disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sees {
    Loads,
    /// Idle disks, whatever waits there.
    Idle,
    /// Idle disks, and it is right: requests do not meet.
    Nobody,
}

/// FCFS disks and a chooser.
struct Disks {
    chooser: Box<dyn Chooser>,
    /// What the chooser sees.
    seen: Vec<Disk>,
    /// When each disk has done all that was sent to it.
    free_ns: Vec<u64>,
    chosen: Vec<u32>,
}

impl Disks {
    fn new(access_ns: &[u64], choice: Choice, seed: u64) -> Disks {
        let seen = access_ns.iter().map(|access_ns| Disk { free_ns: 0, access_ns: *access_ns, queue: 0 });
        // Choosers' draws are others than those of holders.
        let chooser = choice.chooser(!seed);
        Disks { chooser, seen: seen.collect(), free_ns: vec![0; access_ns.len()], chosen: Vec::new() }
    }

    /// Chooses for a request at `now_ns`, and sends it. Calls `arrives` for each bucket in order with the time at which it arrives.
    fn serve(
        &mut self,
        now_ns: u64,
        request: &Request,
        sees: Sees,
        controller: &mut Controller<'_, '_>,
        mut arrives: impl FnMut(u64),
    ) {
        let Disks { chooser, seen, free_ns, chosen } = self;
        if sees == Sees::Nobody {
            controller.rest();
        }
        let begins_ns = controller.begins_ns(now_ns);
        for (holders, _) in request.buckets() {
            for disk in holders {
                let disk = *disk as usize;
                if sees == Sees::Nobody {
                    free_ns[disk] = 0;
                }
                let load_ns = if sees == Sees::Loads { free_ns[disk] } else { 0 };
                let waits_ns = load_ns.saturating_sub(begins_ns);
                seen[disk].free_ns = begins_ns + waits_ns;
                seen[disk].queue = waits_ns.div_ceil(seen[disk].access_ns) as u32;
            }
        }
        let sent_ns = controller.plan(now_ns, || {
            let looks = chooser.looks();
            chooser.choose(seen, request, chosen);
            chooser.looks() - looks
        });
        for disk in chosen.iter() {
            let free_ns = &mut free_ns[*disk as usize];
            *free_ns = (*free_ns).max(sent_ns) + seen[*disk as usize].access_ns;
            arrives(*free_ns);
        }
    }
}

/// Each request is chosen for when it comes.
pub(super) struct Immediate {
    disks: Disks,
    sees: Sees,
}

impl Immediate {
    pub(super) fn new(access_ns: &[u64], choice: Choice, sees: Sees, seed: u64) -> Immediate {
        Immediate { disks: Disks::new(access_ns, choice, seed), sees }
    }
}

impl Server for Immediate {
    fn ask(
        &mut self,
        now_ns: u64,
        id: Id,
        request: &Request,
        controller: &mut Controller<'_, '_>,
        responses: &mut Responses,
    ) {
        self.disks.serve(now_ns, request, self.sees, controller, |at_ns| responses.arrives(id, at_ns));
    }

    fn finish(&mut self, _: &mut Controller<'_, '_>, _: &mut Responses) {}
}

/// Requests are gathered while the array is busy.
pub(super) struct Batched {
    disks: Disks,
    /// So many buckets are not gathered any longer.
    cap: usize,
    batch: Request,
    /// The request of each bucket of the batch.
    of: Vec<Id>,
    /// When all that was sent will have arrived.
    idle_ns: u64,
}

impl Batched {
    pub(super) fn new(access_ns: &[u64], choice: Choice, cap: usize, seed: u64) -> Batched {
        let disks = Disks::new(access_ns, choice, seed);
        Batched { disks, cap, batch: Request::default(), of: Vec::new(), idle_ns: 0 }
    }

    fn send(&mut self, now_ns: u64, controller: &mut Controller<'_, '_>, responses: &mut Responses) {
        let (of, idle_ns) = (&self.of, &mut self.idle_ns);
        let mut at = 0;
        self.disks.serve(now_ns, &self.batch, Sees::Loads, controller, |at_ns| {
            responses.arrives(of[at], at_ns);
            *idle_ns = (*idle_ns).max(at_ns);
            at += 1;
        });
        self.batch.clear();
        self.of.clear();
    }
}

impl Server for Batched {
    fn ask(
        &mut self,
        now_ns: u64,
        id: Id,
        request: &Request,
        controller: &mut Controller<'_, '_>,
        responses: &mut Responses,
    ) {
        if !self.batch.is_empty() && self.idle_ns <= now_ns {
            self.send(self.idle_ns, controller, responses);
        }
        for (holders, needed) in request.buckets() {
            self.batch.push_coded(holders, needed);
            self.of.extend((0..needed).map(|_| id));
        }
        if self.idle_ns <= now_ns || self.batch.len() >= self.cap {
            self.send(now_ns, controller, responses);
        }
    }

    fn finish(&mut self, controller: &mut Controller<'_, '_>, responses: &mut Responses) {
        if !self.batch.is_empty() {
            self.send(self.idle_ns, controller, responses);
        }
    }
}
