//! The actors in the world: their turns, their ports, and the answers to their requests.

use super::{Actor, Final, Pending, Port};
use crate::checkers::Violation;
use crate::checkers::bytes;
use crate::checkers::live;
use crate::history::{Kind, Operation};
use crate::rare::Seen;
use crate::schedule::{By, Whether};
use crate::units::{MS, SECOND};
use crate::world::event::{Event, Input};
use crate::world::{Kind as NodeKind, World};
use base::{Payload, VolumeId};
use std::collections::VecDeque;
use wire::{Io, IoError, IoReply};

impl World {
    /// Gives every actor its first turn.
    pub(crate) fn start_workload(&mut self) {
        for actor in 0..self.workload.actors.len() {
            self.workload.actors[actor].client = self.workload.fresh();
            self.next_turn(actor, 0);
        }
    }

    /// Adds two actors a volume that read all there is, block by block.
    pub(crate) fn start_final_reads(&mut self) {
        for volume in (0..self.workload.volumes.len()).flat_map(|volume| [volume; 2]) {
            if self.is_there(volume) {
                self.add_reader(volume);
            }
        }
    }

    /// Adds an actor that reads all there is of a volume, block by block.
    pub(crate) fn add_reader(&mut self, volume: usize) {
        let script = Some(self.workload.volumes[volume].blocks().collect());
        self.add_actor(volume, script);
    }

    /// Adds actors at a gateway that read all there is of each volume from then on, after `delay_ns`.
    pub(crate) fn add_readers_at(&mut self, node: usize, delay_ns: u64) {
        for volume in
            (0..self.workload.volumes.len()).filter(|volume| self.is_there(*volume)).collect::<Vec<_>>()
        {
            self.add_reader(volume);
            let actor = self.workload.actors.len() - 1;
            self.open_session(actor, node);
            self.next_turn(actor, delay_ns);
        }
    }

    /// Adds an actor that reads and writes a volume that was made during the run.
    pub(crate) fn add_writer(&mut self, volume: usize) {
        self.add_actor(volume, None);
    }

    fn add_actor(&mut self, volume: usize, script: Option<VecDeque<u64>>) {
        let client = self.workload.fresh();
        let actor = self.workload.actors.len();
        let port = Port::None;
        let (attached, turn, pending) = (false, 0, None);
        self.workload.actors.push(Actor { client, volume, attached, port, turn, pending, script });
        self.next_turn(actor, 0);
    }

    /// Actors do not pause for a while: what happens now is about how requests meet it.
    pub(crate) fn burst(&mut self, span_ns: u64) {
        self.workload.burst_until_ns = self.time.now_ns() + span_ns;
        for actor in 0..self.workload.actors.len() {
            let this = &self.workload.actors[actor];
            if this.pending.is_none() && this.script.is_none() && this.port != Port::None {
                let delay_ns = self.workload.draw.below(5 * MS);
                self.next_request(actor, delay_ns);
            }
        }
    }

    /// How many reads the last readers have still to do.
    pub(crate) fn final_reads_left(&self) -> usize {
        let left = |a: &Actor| usize::from(a.pending.is_some()) + a.script.as_ref().map_or(0, VecDeque::len);
        self.workload.actors.iter().map(left).sum()
    }

    /// An actor's turn: it finds a port, or issues a request.
    pub(crate) fn on_turn(&mut self, actor: usize, turn: u64) {
        let this = &self.workload.actors[actor];
        let may_ask =
            || self.workload.issuing && !self.turns.are_over(By::Client, actor) && self.is_there(this.volume);
        let wants = this.script.as_ref().map_or_else(may_ask, |script| !script.is_empty());
        if this.turn != turn || this.pending.is_some() || !wants {
            return;
        }
        let is_reader = this.script.is_some();
        match self.port(actor) {
            Some(port) if is_reader => self.issue(actor, port),
            Some(port) => self.issue_in_turn(actor, port),
            None => self.next_turn(actor, 20 * MS),
        }
    }

    /// A session's volume was opened, or not.
    pub(crate) fn on_opened(&mut self, session: u64, volume: Option<VolumeId>) {
        let Some(&actor) = self.workload.sessions.get(&session) else { return };
        if let Port::Session { session: mine, opened, .. } = &mut self.workload.actors[actor].port
            && *mine == session
        {
            *opened = volume;
        }
    }

    /// An attached client found its volume, or not.
    pub(crate) fn on_attached(&mut self, node: usize, found: bool) {
        if !found {
            let what = format!("{} found no volume", self.nodes[node].id());
            self.judge(Err(Violation::new("live", what)));
        }
    }

    /// The unanswered requests of actors at an attached client: tag, and what.
    pub(crate) fn attached_requests(&self, client: usize) -> Vec<(u64, String)> {
        let on_it = |actor: &&Actor| actor.port == Port::Attached { node: client };
        let requests = self.workload.actors.iter().filter(on_it).filter_map(|actor| actor.pending.as_ref());
        requests.map(|pending| (pending.tag, pending.text.clone())).collect()
    }

    /// Lets idle actors at an attached client ask now.
    pub(crate) fn hurry_actors(&mut self, client: usize) {
        for actor in 0..self.workload.actors.len() {
            let this = &self.workload.actors[actor];
            if this.port == (Port::Attached { node: client }) && this.pending.is_none() {
                let delay_ns = self.workload.draw.below(2 * MS);
                self.next_request(actor, delay_ns);
            }
        }
    }

    /// A request is answered.
    pub(crate) fn on_reply(&mut self, tag: u64, result: Result<IoReply, IoError>, content: &Payload) {
        self.end_failover(tag);
        let Some(actor) = self.workload.tags.remove(&tag) else {
            return self
                .judge(Err(Violation::new("effect once", format!("request #{tag} was answered twice"))));
        };
        let Some(pending) = self.workload.actors[actor].pending.take_if(|pending| pending.tag == tag) else {
            return;
        };
        let verdict = match result {
            Ok(_) => self.on_success(actor, &pending, content),
            Err(error) => self.on_failure(actor, &pending, error),
        };
        self.judge(verdict);
        let hurries =
            self.workload.actors[actor].script.is_some() || self.time.now_ns() < self.workload.burst_until_ns;
        let pause_ns = if hurries { 0 } else { self.draw_pause() };
        self.next_request(actor, pause_ns);
    }

    /// A gateway or client died: the actors on it go on elsewhere, under fresh names.
    pub(crate) fn abandon(&mut self, node: usize) {
        for actor in 0..self.workload.actors.len() {
            let this = &mut self.workload.actors[actor];
            let on_it = match this.port {
                Port::Session { node: mine, .. } | Port::Attached { node: mine } => mine == node,
                Port::None => false,
            };
            if on_it {
                this.port = Port::None;
                let pending = this.pending.take();
                if let Some(pending) = pending {
                    self.workload.tags.remove(&pending.tag);
                    self.record(actor, &pending, None, &[]);
                    self.workload.actors[actor].client = self.workload.fresh();
                }
                self.next_turn(actor, 10 * MS);
            }
        }
    }

    fn next_turn(&mut self, actor: usize, delay_ns: u64) {
        let this = &mut self.workload.actors[actor];
        this.turn += 1;
        let turn = this.turn;
        self.later(delay_ns, Event::Actor { actor, turn });
    }

    /// An actor is free: its next turn comes after the pause that was drawn, or when its schedule has it.
    fn next_request(&mut self, actor: usize, drawn_ns: u64) {
        let is_reader = self.workload.actors[actor].script.is_some();
        let now_ns = self.time.now_ns();
        let pause_ns =
            if is_reader { drawn_ns } else { self.turns.pause_ns(By::Client, actor, now_ns, drawn_ns) };
        self.next_turn(actor, pause_ns);
    }

    fn draw_pause(&mut self) -> u64 {
        let work = &mut self.workload;
        if work.draw.percent(40) { work.draw.below(MS) } else { work.draw.below(2 * work.pause_ns) }
    }

    /// The actor's port, once it can be used; looks for another when it has none.
    fn port(&mut self, actor: usize) -> Option<Port> {
        match self.workload.actors[actor].port {
            Port::None => self.find_port(actor),
            port @ Port::Session { opened: Some(_), .. } => return Some(port),
            Port::Session { since_ns, .. } if self.time.now_ns() - since_ns > 10 * SECOND => {
                self.find_port(actor)
            }
            Port::Session { .. } => {}
            port @ Port::Attached { .. } => return Some(port),
        }
        None
    }

    fn find_port(&mut self, actor: usize) {
        let plan = &self.workload.volumes[self.workload.actors[actor].volume];
        let name = plan.name.clone();
        if self.workload.actors[actor].attached && !plan.is_direct() {
            let nodes = self
                .nodes
                .matching(|n| n.is_alive() && matches!(n.kind(), NodeKind::Client(_, of) if *of == name));
            if !nodes.is_empty() {
                let node = *self.workload.draw.pick(&nodes);
                self.workload.actors[actor].port = Port::Attached { node };
                return;
            }
        }
        let nodes = self.nodes.matching(|n| n.is_alive() && matches!(n.kind(), NodeKind::Gateway(..)));
        if nodes.is_empty() {
            return;
        }
        let node = *self.workload.draw.pick(&nodes);
        self.open_session(actor, node);
    }

    fn open_session(&mut self, actor: usize, node: usize) {
        let name = self.workload.volumes[self.workload.actors[actor].volume].name.clone();
        let session = self.workload.fresh();
        self.workload.sessions.insert(session, actor);
        self.workload.actors[actor].port =
            Port::Session { node, session, opened: None, since_ns: self.time.now_ns() };
        self.deliver(node, Input::Open { session, name });
    }

    fn issue_in_turn(&mut self, actor: usize, port: Port) {
        match self.turns.take(By::Client, actor, self.time.now_ns(), &mut self.workload.draw) {
            Whether::Now => self.issue(actor, port),
            Whether::In(delay_ns) => self.next_turn(actor, delay_ns),
            Whether::Never => {}
        }
    }

    fn issue(&mut self, actor: usize, port: Port) {
        let tag = self.workload.fresh();
        let (io, payload, pending) = self.workload.draw_request(actor, tag, self.time.now_ns());
        for &(register, value) in pending.parts.iter().filter(|_| pending.kind == Kind::Write) {
            self.workload.history.announce(value, register);
        }
        self.workload.tags.insert(tag, actor);
        if let Port::Attached { node } = port {
            self.on_attached_request(node, tag, &pending.text);
        }
        self.workload.actors[actor].pending = Some(pending);
        self.hand_over(port, tag, io, payload);
    }

    fn hand_over(&mut self, port: Port, tag: u64, io: Io, payload: Payload) {
        match port {
            Port::Session { node, session, opened: Some(volume), .. } => {
                self.deliver(node, Input::SessionIo { session, tag, volume, io, payload });
            }
            Port::Attached { node } => self.deliver(node, Input::ClientIo { tag, io, payload }),
            _ => unreachable!("a port that can be used"),
        }
    }

    fn on_success(&mut self, actor: usize, pending: &Pending, content: &Payload) -> Result<(), Violation> {
        let mut values = Vec::new();
        if pending.kind == Kind::Read {
            let wanted = pending.parts.len() * pending.grain;
            if content.len() != wanted {
                let what = format!("{} returned {} B instead of {wanted}", pending.text, content.len());
                return Err(Violation::new("no wrong bytes", what));
            }
            for (at, &(register, _)) in pending.parts.iter().enumerate() {
                let value = bytes::value_of(&content.slice(at * pending.grain, pending.grain), register)?;
                bytes::check(&self.workload.history, register, value)?;
                values.push(value);
            }
        }
        if self.workload.actors[actor].script.is_some() {
            let asked_ns = pending.asked_ns;
            let seen = pending.parts.iter().zip(&values);
            let seen = seen.map(|(&(register, _), &value)| Final { register, value, asked_ns });
            self.workload.finals.extend(seen);
        }
        self.workload.count(if pending.kind == Kind::Read { "reads" } else { "writes" });
        self.record(actor, pending, Some(self.time.now_ns()), &values);
        Ok(())
    }

    fn on_failure(&mut self, actor: usize, pending: &Pending, error: IoError) -> Result<(), Violation> {
        self.record(actor, pending, None, &[]);
        self.workload.actors[actor].client = self.workload.fresh();
        if error == IoError::NoSpace {
            self.workload.count("no space");
            self.judges.count_rare(Seen::NoSpaceAnswered);
        } else {
            self.workload.count("errors");
        }
        let volume = self.workload.actors[actor].volume;
        live::check_error(error, self.excuses(volume), &pending.text)
    }

    /// Writes an operation a register into the history; unanswered reads say nothing.
    fn record(&mut self, actor: usize, pending: &Pending, answered_ns: Option<u64>, values: &[u64]) {
        let client = self.workload.actors[actor].client;
        for (at, &(register, written)) in pending.parts.iter().enumerate() {
            let value = match pending.kind {
                Kind::Write => written,
                Kind::Read if answered_ns.is_some() => values[at],
                Kind::Read => continue,
            };
            let asked_ns = pending.asked_ns;
            let operation = Operation { client, register, kind: pending.kind, value, asked_ns, answered_ns };
            self.workload.history.push(operation);
        }
    }
}
