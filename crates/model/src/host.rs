//! The processors of a machine: what work costs them, and whose turn it is.
//!
//! A daemon works in turns: it takes all that has come, and what it says goes out at the turn's end. A processor is given for a turn, and
//! for the next ones as long as more has come meanwhile and the daemon's slice of time lasts; then to whoever has waited longest.

use base::HashMap;
use std::collections::VecDeque;
use thiserror::Error;

/// A kind of work. The cost of a turn is the sum of what was done in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A turn of a daemon's loop, whatever it finds to do.
    Turn,
    /// A turn that begins after its daemon slept: it has to be scheduled first.
    Wake,
    /// A packet, at the node that sends it, and again at the node that it comes to.
    Packet,
    /// 1024 bytes of content, in a packet or a client's request at each end, or read from a disk.
    Kibibyte,
    /// A request of a client, at the gateway.
    Request,
    /// A request, at the client that asks.
    Client,
    /// A read of a disk.
    Read,
    /// A write of a disk, with its part of what it takes to journal it first.
    Write,
    /// All writes of a disk in one turn, which are journalled together.
    Batch,
    /// A batch that finds a disk with nothing to do: whoever writes for it has to be woken.
    Rouse,
    /// 1024 bytes that are written to a disk, to its journal and to their place.
    Written,
    /// 1024 bytes of content that are multiplied or added, for parity.
    Coded,
}

impl Kind {
    /// All kinds, with their names in files of costs.
    pub const ALL: [(Kind, &'static str); KINDS] = [
        (Kind::Turn, "turn_ns"),
        (Kind::Wake, "wake_ns"),
        (Kind::Packet, "packet_ns"),
        (Kind::Kibibyte, "kibibyte_ns"),
        (Kind::Request, "request_ns"),
        (Kind::Client, "client_ns"),
        (Kind::Read, "read_ns"),
        (Kind::Write, "write_ns"),
        (Kind::Batch, "batch_ns"),
        (Kind::Rouse, "rouse_ns"),
        (Kind::Written, "written_ns"),
        (Kind::Coded, "coded_ns"),
    ];
}

/// How many kinds there are.
pub const KINDS: usize = Kind::Coded as usize + 1;

/// How much of each kind was done.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work(pub [f64; KINDS]);

impl Work {
    pub fn add(&mut self, kind: Kind, count: f64) {
        self.0[kind as usize] += count;
    }

    /// How much of one kind.
    pub fn count(&self, kind: Kind) -> f64 {
        self.0[kind as usize]
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
    pub sleep_ns: f64,
}

impl Costs {
    /// Nanoseconds that a processor is busy with that.
    pub fn ns_of(&self, work: &Work) -> f64 {
        self.ns.iter().zip(&work.0).map(|(ns, count)| ns * count).sum()
    }

    /// The same in whole nanoseconds.
    pub fn of(&self, work: &Work) -> u64 {
        libm::round(self.ns_of(work).max(0.0)) as u64
    }
}

/// What is known of a machine: a file of `brickwork lab calibrate`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Machine {
    pub processors: u32,
    pub costs: Costs,
    /// Microseconds of processors that a request of the reference load cost when the costs were measured.
    pub reference_us: f64,
}

/// Why a file of costs cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum MachineError {
    #[error("{0}")]
    Syntax(String),
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("{name} = {value} is not {wanted}")]
    Value { name: String, value: String, wanted: &'static str },
}

const PROCESSORS: &str = "processors";
const SLEEP: &str = "sleep_ns";
const REFERENCE: &str = "reference_us";
const NUMBER: &str = "a number from 0 to 1e9";

impl Machine {
    /// Reads a file's text. All keys must be there, and no others.
    ///
    /// # Errors
    /// What is wrong with it: a key, and its line where the text is no TOML.
    pub fn parse(text: &str) -> Result<Machine, MachineError> {
        let table: toml::Table =
            toml::from_str(text).map_err(|error| MachineError::Syntax(error.to_string()))?;
        let wrong = |name: &str, wanted| {
            let value = table.get(name).map_or_else(String::new, ToString::to_string);
            MachineError::Value { name: name.to_owned(), value, wanted }
        };
        let number = |name: &'static str| {
            let value = table.get(name).ok_or(MachineError::Missing(name))?;
            let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
            number.filter(|number| (0.0..=1e9).contains(number)).ok_or_else(|| wrong(name, NUMBER))
        };
        let known = |name: &str| {
            [PROCESSORS, SLEEP, REFERENCE].contains(&name)
                || Kind::ALL.iter().any(|(_, known)| *known == name)
        };
        if let Some(unknown) = table.keys().find(|name| !known(name)) {
            return Err(wrong(unknown, "a key of a file of costs"));
        }
        let processors = table.get(PROCESSORS).ok_or(MachineError::Missing(PROCESSORS))?.as_integer();
        let processors = processors.filter(|count| (1..=4096).contains(count));
        let mut costs = Costs { ns: [0.0; KINDS], sleep_ns: number(SLEEP)? };
        for (kind, name) in Kind::ALL {
            costs.ns[kind as usize] = number(name)?;
        }
        let processors = processors.ok_or_else(|| wrong(PROCESSORS, "a whole number from 1 to 4096"))? as u32;
        Ok(Machine { processors, costs, reference_us: number(REFERENCE)? })
    }

    /// The same machine at a time when a request of the reference load costs so much.
    #[must_use]
    pub fn at_speed(self, reference_us: f64) -> Machine {
        let factor = if self.reference_us > 0.0 { reference_us / self.reference_us } else { 1.0 };
        let Costs { ns, sleep_ns } = self.costs;
        let costs = Costs { ns: ns.map(|ns| ns * factor), sleep_ns: sleep_ns * factor };
        Machine { costs, reference_us, ..self }
    }

    /// The text of its file.
    pub fn text(&self) -> String {
        let Machine { processors, costs, reference_us } = self;
        let mut text = format!("{PROCESSORS} = {processors}\n{REFERENCE} = {reference_us:.1}\n");
        text += &format!("{SLEEP} = {:.0}\n", costs.sleep_ns);
        for (kind, name) in Kind::ALL {
            text += &format!("{name} = {:.0}\n", costs.ns[kind as usize]);
        }
        text
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

/// For how long somebody who always has more to do goes on while others wait: what Linux gives on two processors.
pub const SLICE_NS: u64 = 1_400_000;
/// Who had a turn so recently is not taken to another processor, since its data are in this one's caches (Linux:
/// `sched_migration_cost_ns`).
const HOT_NS: u64 = 500_000;

/// Whose turn it is on the processors of one machine. As in Linux each processor has a queue: who wakes goes to a processor that sleeps, to
/// its last one if that does, and otherwise waits where it was last. So one processor may sleep while somebody waits for another one.
#[derive(Clone, Debug)]
pub struct Processors {
    queues: Vec<Queue>,
    members: HashMap<usize, Member>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    is_awake: bool,
    /// Who wants a turn here, in order.
    waiting: VecDeque<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    /// Whether it has a turn or waits for one.
    wants: bool,
    /// Its processor, or its last one.
    on: usize,
    /// When its last turn ended.
    ended_ns: u64,
}

impl Processors {
    /// So many processors, which sleep.
    pub fn new(count: u32) -> Processors {
        Processors { queues: vec![Queue::default(); count.max(1) as usize], members: HashMap::default() }
    }

    /// Somebody has work to do. One that has a turn already is asked again at its end.
    pub fn want(&mut self, who: usize) -> Begin {
        let count = self.queues.len();
        let member =
            self.members.entry(who).or_insert_with(|| Member { wants: false, on: who % count, ended_ns: 0 });
        if core::mem::replace(&mut member.wants, true) {
            return Begin::Later;
        }
        let mut nearest = core::iter::once(member.on).chain(0..count);
        let Some(asleep) = nearest.find(|at| !self.queues[*at].is_awake) else {
            self.queues[member.on].waiting.push_back(who);
            return Begin::Later;
        };
        self.queues[asleep].is_awake = true;
        member.on = asleep;
        Begin::Wakes
    }

    /// A turn is over, and whether there is more to do: whose turn begins now on this processor, if it does not go to sleep. Whoever has
    /// more goes on at once if it `may_stay`, and otherwise stands at the end.
    pub fn done(&mut self, now_ns: u64, who: usize, has_more: bool, may_stay: bool) -> Option<usize> {
        let member = self.members.get_mut(&who)?;
        (member.wants, member.ended_ns) = (has_more, now_ns);
        if has_more && may_stay {
            return Some(who);
        }
        let here = member.on;
        if has_more {
            self.queues[here].waiting.push_back(who);
        }
        let next = self.queues[here].waiting.pop_front().or_else(|| self.fetch(now_ns));
        self.queues[here].is_awake = next.is_some();
        let member = next.and_then(|next| self.members.get_mut(&next));
        member.into_iter().for_each(|member| member.on = here);
        next
    }

    /// Somebody who waits for another processor and may be taken from it.
    fn fetch(&mut self, now_ns: u64) -> Option<usize> {
        let members = &self.members;
        let may_leave = |who: &usize| members[who].ended_ns + HOT_NS <= now_ns;
        self.queues.iter_mut().find_map(|queue| {
            let at = queue.waiting.iter().position(may_leave)?;
            queue.waiting.remove(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_turn_costs_what_was_done_in_it() {
        let costs = Costs {
            ns: [1000.0, 0.0, 100.0, 10.0, 0.0, 0.0, 5000.0, 0.5, 0.0, 0.0, 0.0, 0.0],
            sleep_ns: 7.0,
        };
        let mut work = Work::default();
        work.add(Kind::Turn, 1.0);
        work.add(Kind::Packet, 3.0);
        let mut more = Work::default();
        more.add(Kind::Kibibyte, 4.0);
        more.add(Kind::Write, 1.0);
        work.extend(&more);
        assert_eq!(costs.of(&work), 1341);
    }

    #[test]
    fn a_file_of_costs_is_read_as_it_was_written_and_mistakes_are_named() {
        let costs =
            Costs { ns: [1.0, 10.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0, 11.0, 12.0, 13.0], sleep_ns: 8.0 };
        let machine = Machine { processors: 2, costs, reference_us: 70.5 };
        let text = machine.text();
        assert_eq!(Machine::parse(&text), Ok(machine));
        let slower = machine.at_speed(141.0);
        assert_eq!((slower.costs.ns[1], slower.costs.sleep_ns, slower.processors), (20.0, 16.0, 2));
        let why = |text: &str| Machine::parse(text).expect_err("refused").to_string();
        assert!(why(&text.replace("turn_ns = 1\n", "")).contains("turn_ns is missing"));
        assert!(why(&text.replace("write_ns = 7", "write_ns = -7")).contains("write_ns = -7 is not"));
        assert!(why(&format!("{text}other = 1\n")).contains("other = 1 is not a key"));
        assert!(why("processors = ").contains("line 1"));
    }

    #[test]
    fn who_was_here_just_now_waits_here_although_another_processor_sleeps() {
        let mut processors = Processors::new(2);
        assert_eq!([0, 1].map(|who| processors.want(who)), [Begin::Wakes; 2]);
        assert_eq!(processors.want(2), Begin::Later, "where it would be by its number: with 0");
        assert_eq!(processors.done(100, 0, false, false), Some(2));
        assert_eq!(processors.want(0), Begin::Later, "behind 2");
        assert_eq!(processors.done(200, 1, false, false), None, "0 is too warm to be taken away");
        assert_eq!(processors.want(1), Begin::Wakes);
        assert_eq!(processors.done(100 + HOT_NS, 1, false, false), Some(0), "now it is cold");
        assert_eq!(processors.done(100 + HOT_NS, 2, false, false), None);
    }

    proptest! {
        /// Nobody has two turns at a time, nobody is forgotten, and no processor sleeps beside a queue of its own.
        #[test]
        fn processors_are_given_in_order(count in 1u32..4, steps in proptest::collection::vec((0usize..6, any::<bool>()), 1..200)) {
            let mut processors = Processors::new(count);
            let (mut running, mut waiting): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
            for (step, (who, ends)) in steps.into_iter().enumerate() {
                if ends && running.contains(&who) {
                    let has_more = who % 2 == 0;
                    running.retain(|other| *other != who);
                    waiting.extend(has_more.then_some(who));
                    let next = processors.done(step as u64 * 100_000, who, has_more, false);
                    if let Some(next) = next {
                        let at = waiting.iter().position(|other| *other == next).expect("it waits");
                        waiting.remove(at);
                        running.push(next);
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
                let awake = processors.queues.iter().filter(|queue| queue.is_awake).count();
                prop_assert_eq!(awake, running.len());
                let queued: usize = processors.queues.iter().map(|queue| queue.waiting.len()).sum();
                prop_assert_eq!(queued, waiting.len());
                prop_assert!(processors.queues.iter().all(|queue| queue.is_awake || queue.waiting.is_empty()));
            }
        }
    }
}
