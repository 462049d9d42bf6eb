//! The processors of a machine: what work costs them, and whose turn it is.
//!
//! A daemon works in turns: it takes all that has come, and what it says goes out at the turn's end. So a turn is what a
//! processor is given for, one after another in the order in which they were wanted, and never for longer than the turn.

use std::collections::VecDeque;

/// A kind of work. The cost of a turn is the sum of what was done in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A turn of a daemon's loop, whatever it finds to do.
    Turn,
    /// A packet, at the node that sends it, and again at the node that it comes to.
    Packet,
    /// 1024 bytes of content, in a packet or a client's request at each end, or of a disk.
    Kibibyte,
    /// A request of a client, at the gateway.
    Request,
    /// A request, at the client that asks.
    Client,
    /// A read of a disk.
    Read,
    /// A write of a disk, with all that it takes to journal it first.
    Write,
}

impl Kind {
    /// All kinds, with their names in files of costs.
    pub const ALL: [(Kind, &'static str); KINDS] = [
        (Kind::Turn, "turn_ns"),
        (Kind::Packet, "packet_ns"),
        (Kind::Kibibyte, "kibibyte_ns"),
        (Kind::Request, "request_ns"),
        (Kind::Client, "client_ns"),
        (Kind::Read, "read_ns"),
        (Kind::Write, "write_ns"),
    ];
}

/// How many kinds there are.
pub const KINDS: usize = Kind::Write as usize + 1;

/// How much of each kind was done.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work(pub [f64; KINDS]);

impl Work {
    pub fn add(&mut self, kind: Kind, count: f64) {
        self.0[kind as usize] += count;
    }

    /// What of it was not done `before`.
    #[must_use]
    pub fn since(&self, before: &Work) -> Work {
        Work(core::array::from_fn(|kind| self.0[kind] - before.0[kind]))
    }

    /// All of `other` was done as well.
    pub fn extend(&mut self, other: &Work) {
        self.0.iter_mut().zip(&other.0).for_each(|(all, more)| *all += more);
    }
}

/// What work costs a processor.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Costs {
    /// Nanoseconds of one of each kind.
    pub ns: [f64; KINDS],
    /// Nanoseconds from when work comes to a processor that sleeps until it is begun. The processor does nothing then.
    pub wake_ns: f64,
}

impl Costs {
    /// How long a processor is busy with that.
    pub fn of(&self, work: &Work) -> u64 {
        let sum: f64 = self.ns.iter().zip(&work.0).map(|(ns, count)| ns * count).sum();
        libm::round(sum.max(0.0)) as u64
    }
}

/// When a turn begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// A processor slept: now, but for what it takes to wake it.
    Wakes,
    /// When others are done, or what is under way is.
    Later,
}

/// Whose turn it is on the processors of one machine.
#[derive(Clone, Debug)]
pub struct Processors {
    asleep: u32,
    /// Who wants a turn, in order.
    waiting: VecDeque<usize>,
    /// Who has a turn or waits for one.
    wanting: Vec<bool>,
}

impl Processors {
    /// So many processors, which sleep.
    pub fn new(count: u32) -> Processors {
        Processors { asleep: count.max(1), waiting: VecDeque::new(), wanting: Vec::new() }
    }

    /// Somebody has work to do. One that has a turn already is asked again at its end.
    pub fn want(&mut self, who: usize) -> Begin {
        if self.wanting.len() <= who {
            self.wanting.resize(who + 1, false);
        }
        if core::mem::replace(&mut self.wanting[who], true) {
            return Begin::Later;
        }
        if self.asleep == 0 {
            self.waiting.push_back(who);
            return Begin::Later;
        }
        self.asleep -= 1;
        Begin::Wakes
    }

    /// A turn is over, and whether there is more to do: whose turn begins now on this processor, if it does not go to sleep.
    pub fn done(&mut self, who: usize, has_more: bool) -> Option<usize> {
        self.wanting[who] = has_more;
        if has_more {
            self.waiting.push_back(who);
        }
        let next = self.waiting.pop_front();
        self.asleep += u32::from(next.is_none());
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_turn_costs_what_was_done_in_it() {
        let costs = Costs { ns: [1000.0, 100.0, 10.0, 0.0, 0.0, 5000.0, 0.5], wake_ns: 7.0 };
        let mut work = Work::default();
        work.add(Kind::Turn, 1.0);
        work.add(Kind::Packet, 3.0);
        let mut more = Work::default();
        more.add(Kind::Kibibyte, 4.0);
        more.add(Kind::Write, 1.0);
        work.extend(&more);
        assert_eq!(costs.of(&work), 1341);
    }

    proptest! {
        /// Nobody has two turns at a time, no processor sleeps while somebody waits, and turns go round in order.
        #[test]
        fn processors_are_given_in_order(count in 1u32..4, steps in proptest::collection::vec((0usize..6, any::<bool>()), 1..200)) {
            let mut processors = Processors::new(count);
            let (mut running, mut waiting): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
            for (who, ends) in steps {
                if ends && running.contains(&who) {
                    let has_more = who % 2 == 0;
                    running.retain(|other| *other != who);
                    if has_more {
                        waiting.push(who);
                    }
                    let next = processors.done(who, has_more);
                    prop_assert_eq!(next, waiting.first().copied());
                    if !waiting.is_empty() {
                        running.push(waiting.remove(0));
                    }
                } else {
                    let is_known = running.contains(&who) || waiting.contains(&who);
                    let begins = !is_known && running.len() < count as usize;
                    let begin = if begins { Begin::Wakes } else { Begin::Later };
                    prop_assert_eq!(processors.want(who), begin);
                    if begins {
                        running.push(who);
                    } else if !is_known {
                        waiting.push(who);
                    }
                }
                prop_assert!(running.len() <= count as usize);
                prop_assert!(waiting.is_empty() || running.len() == count as usize);
            }
        }
    }
}
