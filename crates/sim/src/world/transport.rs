//! How packets travel, and how connections come and go.

use super::event::{Event, Input};
use super::net::{Pair, pair};
use super::physics::timed::{Coded, Parcel};
use super::{Kind, World};
use crate::timed::Class;
use crate::units::{MS, SECOND};
use base::{NodeId, Time};
use wire::{Change, Message, Packet};

impl World {
    /// Sends a packet, if there is a connection.
    pub(super) fn send(&mut self, from: usize, to: NodeId, mut packet: Packet) {
        let sender = self.nodes[from].id();
        if let Some(more) = self.lie(from, to, &mut packet.message) {
            self.send(from, to, Packet::from(more));
        }
        if self.is_watched {
            self.judges.watch(Time(self.time.now_ns()), sender, to, &packet);
            self.follow(&packet.message);
        }
        let Some(target) = self.meet(from, to) else { return };
        if self.physics.net().is_blocked(from, target) {
            return;
        }
        let late_ns = self.lateness_ns(&packet.message) + self.faults.lateness_ns(from);
        let is_between_bricks = matches!((sender, to), (NodeId::Brick(_), NodeId::Brick(_)));
        if let Some(load) = &mut self.load {
            load.on_packet((sender, to), &packet);
        }
        if let Some(watch) = &mut self.watch {
            watch.on_packet(&packet);
        }
        if self.is_lost(&packet.message) {
            return;
        }
        let (content_bytes, coded) = (packet.payload.len() as u64, coded_for(&packet));
        let class = Class::of((sender, to), &packet);
        let parcel = Parcel { is_between_bricks, content_bytes, coded, class };
        let Some(arrivals) = self.physics.send(self.time.now_ns(), from, target, parcel) else { return };
        if self.physics.are_together(from, target) {
            // It passes no port, where others compute what they were told.
            self.physics.code(self.time.now_ns(), target, coded_from(&packet));
        }
        self.faults.note_arrivals(&arrivals);
        let life = self.nodes[target].life();
        let event =
            |packet| Event::Node { node: target, life, input: Input::Packet { from: sender, packet } };
        if let Some(at_ns) = arrivals.second_ns {
            self.time.at(at_ns + late_ns, event(packet.clone()));
        }
        if let Some(at_ns) = arrivals.first_ns {
            let arrived = match self.physics.takes_in(from, target) {
                true => Event::Port { node: target, life, from: sender, packet },
                false => event(packet),
            };
            self.time.at(at_ns + late_ns, arrived);
        }
    }

    /// A packet is at the switch's port to a node: from there it goes to the node's memory.
    pub(super) fn on_port(&mut self, node: usize, from: NodeId, packet: Packet) {
        let now_ns = self.time.now_ns();
        // Nobody waits for that: it is done at the latest when the disk has it.
        self.physics.code(now_ns, node, coded_from(&packet));
        let class = Class::of((from, self.nodes[node].id()), &packet);
        let there_ns = self.physics.take_in(now_ns, node, (class, packet.payload.len() as u64));
        let life = self.nodes[node].life();
        self.time.at(there_ns, Event::Node { node, life, input: Input::Packet { from, packet } });
    }

    /// Whether the network of a study loses this.
    fn is_lost(&mut self, message: &Message) -> bool {
        let claims_lost_ppm =
            self.shape.hardware.as_ref().map_or(0, |hardware| hardware.network.claims_lost_ppm);
        claims_lost_ppm > 0
            && matches!(message, Message::Claims { .. })
            && self.physics.draw().chance(claims_lost_ppm)
    }

    /// What the faults and the figures want to know of what is said.
    fn follow(&mut self, message: &Message) {
        match message {
            Message::Fence { view, .. } => {
                self.watch_cut(view);
                self.forgive(view);
            }
            Message::Activate { view, .. } => self.forgive(view),
            Message::Published { views, .. } | Message::HeartbeatDone { views, .. } => {
                views.iter().for_each(|view| self.forgive(view));
            }
            Message::Heartbeat { brick, status, .. } => self.follow_scrub(*brick, &status.scrub),
            _ => {}
        }
    }

    /// From now on `node` keeps a connection to `peer`.
    pub(crate) fn want(&mut self, node: usize, peer: NodeId) {
        if !self.nodes[node].may_reach(peer) {
            return;
        }
        for target in self.all_of(peer).into_iter().filter(|target| *target != node) {
            if !self.nodes[target].is_gone() && self.physics.net_mut().want(node, target) {
                let delay_ns = self.physics.draw().between(MS / 5, 2 * MS);
                self.try_connect(pair(node, target), delay_ns);
            }
        }
    }

    /// `node` calls `peer` no more.
    pub(super) fn forget(&mut self, node: usize, peer: NodeId) {
        for target in self.all_of(peer) {
            self.physics.net_mut().forget(node, target);
        }
    }

    /// Those who call a node at whose address another one runs now meet that one: it is not whom they called.
    fn meet_successor(&mut self, pair: Pair) {
        for (dialer, peer) in [pair, (pair.1, pair.0)] {
            let runs = self.nodes[peer].successor().is_some_and(|successor| self.nodes[successor].runs());
            if runs && self.nodes[dialer].runs() && self.physics.net_mut().forget(dialer, peer) {
                let gone = self.nodes[peer].id();
                self.deliver(dialer, Input::Gone(gone));
            }
        }
    }

    /// Clients that kept to a gateway, which is gone, connect with all that run.
    pub(crate) fn let_go_of(&mut self, gateway: usize) {
        let gone = self.nodes[gateway].id();
        let others = self.nodes.matching(|node| node.is_alive() && matches!(node.kind(), Kind::Gateway(..)));
        for client in 0..self.nodes.len() {
            if self.nodes[client].let_go_of(gone) {
                others.iter().for_each(|other| self.want(client, self.nodes[*other].id()));
            }
        }
    }

    /// Breaks a connection that stands: both sides learn of it after `delay_ns`.
    pub(crate) fn reset(&mut self, pair: Pair, delay_ns: u64) {
        if let Some(connection) = self.physics.net_mut().connection(pair).filter(|connection| connection.up) {
            let epoch = connection.epoch;
            self.later(delay_ns, Event::Break { pair, epoch });
        }
    }

    /// All connections of a node that has just died: its peers learn of it soon, or late when packets vanish.
    pub(super) fn drop_connections(&mut self, node: usize) {
        self.physics.net_mut().forget_wishes(node);
        for peer in self.physics.net().peers(node) {
            let pair = pair(node, peer);
            let cut = self.physics.net().is_cut(pair);
            let delay_ns = if cut {
                self.physics.draw().between(SECOND, 5 * SECOND)
            } else {
                self.physics.draw().between(MS / 10, 2 * MS)
            };
            let connection = self.physics.net_mut().connection(pair).expect("a peer");
            let was_up = core::mem::take(&mut connection.up);
            connection.epoch += 1;
            let (epoch, wanted) = (connection.epoch, connection.wanted != [false; 2]);
            connection.unaware = was_up.then_some(peer);
            if was_up {
                self.later(delay_ns, Event::Break { pair, epoch });
            }
            if wanted {
                self.later(delay_ns + MS, Event::Connect { pair, epoch });
            }
        }
    }

    pub(super) fn on_connect(&mut self, pair: Pair, epoch: u32) {
        let (a, b) = pair;
        let Some(connection) = self.physics.net_mut().connection(pair) else { return };
        let wanted = connection.wanted != [false; 2];
        if connection.epoch != epoch
            || connection.up
            || !wanted
            || self.nodes[a].is_gone()
            || self.nodes[b].is_gone()
        {
            return;
        }
        if !self.physics.net().is_cut(pair) {
            self.meet_successor(pair);
        }
        if !self.nodes[a].runs() || !self.nodes[b].runs() || self.physics.net().is_cut(pair) {
            let delay_ns = self.physics.draw().between(20 * MS, 500 * MS);
            self.later(delay_ns, Event::Connect { pair, epoch });
            return;
        }
        let connection = self.physics.net_mut().connection(pair).expect("just looked at");
        connection.up = true;
        connection.epoch += 1;
        let unaware = connection.unaware.take();
        self.tell_down(pair, unaware);
        let (ida, idb) = (self.nodes[a].id(), self.nodes[b].id());
        self.deliver(a, Input::Up(idb));
        self.deliver(b, Input::Up(ida));
    }

    pub(super) fn on_break(&mut self, pair: Pair, epoch: u32) {
        let (a, b) = pair;
        let Some(connection) = self.physics.net_mut().connection(pair) else { return };
        if connection.epoch != epoch {
            return;
        }
        if !connection.up {
            let unaware = connection.unaware.take();
            return self.tell_down(pair, unaware);
        }
        connection.up = false;
        connection.epoch += 1;
        let (ida, idb) = (self.nodes[a].id(), self.nodes[b].id());
        self.deliver(a, Input::Down(idb));
        self.deliver(b, Input::Down(ida));
        let delay_ns = self.physics.draw().between(MS, 100 * MS);
        self.try_connect(pair, delay_ns);
    }

    fn tell_down(&mut self, (a, b): Pair, unaware: Option<usize>) {
        if let Some(node) = unaware {
            let peer = self.nodes[if node == a { b } else { a }].id();
            self.deliver(node, Input::Down(peer));
        }
    }

    fn try_connect(&mut self, pair: Pair, delay_ns: u64) {
        let epoch = self.physics.net_mut().connection(pair).map_or(0, |connection| connection.epoch);
        self.later(delay_ns, Event::Connect { pair, epoch });
    }
}

/// What a node computed for what it says: the difference of an old block and a new one, or the new parity from both and the old parity.
pub(super) fn coded_for(packet: &Packet) -> Coded {
    match packet.message {
        Message::Prepared { .. } => Coded::sum(2, packet.payload.len() as u64),
        Message::Prepare { change: Change::Replace { .. }, .. } => Coded::sum(3, packet.payload.len() as u64),
        _ => Coded::default(),
    }
}

/// What a brick computes because of what it is told, before that is on its disk: parity takes in a difference.
pub(super) fn coded_from(packet: &Packet) -> Coded {
    match packet.message {
        Message::Prepare { change: Change::Xor { .. }, .. } => Coded::sum(2, packet.payload.len() as u64),
        _ => Coded::default(),
    }
}
