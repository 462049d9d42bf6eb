//! The processors of a machine: what work costs them, and whose turn it is.
//!
//! A daemon works in turns: it takes all that has come, and what it says goes out at the turn's end. A processor is given for a turn, and
//! for the next ones as long as more has come meanwhile and the daemon's slice of time lasts; then to whoever has waited longest.

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
    /// 1024 bytes of content, in a packet or a client's request at each end, or of a disk.
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
    ];
}

/// How many kinds there are.
pub const KINDS: usize = Kind::Batch as usize + 1;

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
const NS: &str = "a number from 0 to 1e9";

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
        let ns = |name: &'static str| {
            let value = table.get(name).ok_or(MachineError::Missing(name))?;
            let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
            number.filter(|ns| (0.0..=1e9).contains(ns)).ok_or_else(|| wrong(name, NS))
        };
        let known = |name: &str| {
            name == PROCESSORS || name == SLEEP || Kind::ALL.iter().any(|(_, known)| *known == name)
        };
        if let Some(unknown) = table.keys().find(|name| !known(name)) {
            return Err(wrong(unknown, "a key of a file of costs"));
        }
        let processors = table.get(PROCESSORS).ok_or(MachineError::Missing(PROCESSORS))?.as_integer();
        let processors = processors.filter(|count| (1..=4096).contains(count));
        let mut costs = Costs { ns: [0.0; KINDS], sleep_ns: ns(SLEEP)? };
        for (kind, name) in Kind::ALL {
            costs.ns[kind as usize] = ns(name)?;
        }
        let processors = processors.ok_or_else(|| wrong(PROCESSORS, "a whole number from 1 to 4096"))? as u32;
        Ok(Machine { processors, costs })
    }

    /// The text of its file.
    pub fn text(&self) -> String {
        let mut text = format!("{PROCESSORS} = {}\n{SLEEP} = {:.0}\n", self.processors, self.costs.sleep_ns);
        for (kind, name) in Kind::ALL {
            text += &format!("{name} = {:.0}\n", self.costs.ns[kind as usize]);
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

    /// A turn is over, and whether there is more to do: whose turn begins now on this processor, if it does not go to sleep. Whoever has
    /// more goes on at once if it `may_stay`, and otherwise stands at the end.
    pub fn done(&mut self, who: usize, has_more: bool, may_stay: bool) -> Option<usize> {
        self.wanting[who] = has_more;
        if has_more && may_stay {
            return Some(who);
        }
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
        let costs = Costs { ns: [1000.0, 0.0, 100.0, 10.0, 0.0, 0.0, 5000.0, 0.5, 0.0], sleep_ns: 7.0 };
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
        let costs = Costs { ns: [1.0, 10.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0], sleep_ns: 8.0 };
        let machine = Machine { processors: 2, costs };
        let text = machine.text();
        assert_eq!(Machine::parse(&text), Ok(machine));
        let why = |text: &str| Machine::parse(text).expect_err("refused").to_string();
        assert!(why(&text.replace("turn_ns = 1\n", "")).contains("turn_ns is missing"));
        assert!(why(&text.replace("write_ns = 7", "write_ns = -7")).contains("write_ns = -7 is not"));
        assert!(why(&format!("{text}other = 1\n")).contains("other = 1 is not a key"));
        assert!(why("processors = ").contains("line 1"));
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
                    let next = processors.done(who, has_more, false);
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
