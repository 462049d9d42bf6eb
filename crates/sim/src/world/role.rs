//! The machines under one roof: inputs are turned into each machine's own events, and its effects into [`Output`].

use super::event::{Input, Output};
use super::operator::Operator;
use base::{Depth, Machine, Time};
use node::{Backing, BrickNode};
use roles::client::{Client, ClientEffect, ClientEvent};
use roles::directory::{Directory, DirectoryEffect, DirectoryEvent, StoreToken};
use roles::gateway::{Gateway, GatewayEffect, GatewayEvent};
use rules::Counters;

/// A brick over whatever keeps its blocks.
pub(crate) type Brick = BrickNode<Box<dyn Backing>>;

/// A machine and the effects of its batch.
pub(crate) enum Role {
    Directory(Box<Directory>, Vec<DirectoryEffect>),
    Brick(Box<Brick>, Vec<node::Effect>),
    Gateway(Box<Gateway>, Vec<GatewayEffect>),
    Client(Box<Client>, Vec<ClientEffect>),
    /// The one who sets the cluster up and looks at its end.
    Operator(Box<Operator>),
}

impl Role {
    /// Takes one input; one that the machine does not know is none.
    pub(crate) fn step(&mut self, now: Time, input: Input) {
        match self {
            Role::Directory(machine, fx) => {
                directory_event(input).map_or((), |event| machine.step(now, event, fx))
            }
            Role::Brick(machine, fx) => brick_event(input).map_or((), |event| machine.step(now, event, fx)),
            Role::Gateway(machine, fx) => {
                gateway_event(input).map_or((), |event| machine.step(now, event, fx))
            }
            Role::Client(machine, fx) => client_event(input).map_or((), |event| machine.step(now, event, fx)),
            Role::Operator(operator) => operator.step(now, input),
        }
    }

    pub(crate) fn settle(&mut self, now: Time) {
        match self {
            Role::Operator(_) => {}
            Role::Directory(machine, fx) => machine.settle(now, fx),
            Role::Brick(machine, fx) => machine.settle(now, fx),
            Role::Gateway(machine, fx) => machine.settle(now, fx),
            Role::Client(machine, fx) => machine.settle(now, fx),
        }
    }

    /// The deadline has come.
    pub(crate) fn wake(&mut self, now: Time) {
        match self {
            Role::Directory(machine, fx) => machine.wake(now, fx),
            Role::Brick(machine, fx) => machine.wake(now, fx),
            Role::Gateway(machine, fx) => machine.wake(now, fx),
            Role::Client(machine, fx) => machine.wake(now, fx),
            Role::Operator(operator) => operator.wake(now),
        }
    }

    /// When to wake it.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self {
            Role::Directory(machine, _) => machine.deadline().map(|(at, _)| at),
            Role::Brick(machine, _) => machine.deadline().map(|(at, _)| at),
            Role::Gateway(machine, _) => machine.deadline().map(|(at, _)| at),
            Role::Client(machine, _) => machine.deadline().map(|(at, _)| at),
            Role::Operator(operator) => operator.deadline(),
        }
    }

    /// Why it wants to be woken.
    pub(crate) fn reason(&self) -> &'static str {
        let reason = match self {
            Role::Operator(_) => None,
            Role::Directory(machine, _) => machine.deadline(),
            Role::Brick(machine, _) => machine.deadline(),
            Role::Gateway(machine, _) => machine.deadline(),
            Role::Client(machine, _) => machine.deadline(),
        };
        reason.map_or("nothing", |(_, reason)| reason)
    }

    pub(crate) fn check(&self, depth: Depth) {
        match self {
            Role::Operator(_) => {}
            Role::Directory(machine, _) => machine.check(depth),
            Role::Brick(machine, _) => machine.check(depth),
            Role::Gateway(machine, _) => machine.check(depth),
            Role::Client(machine, _) => machine.check(depth),
        }
    }

    /// The effects of the batch.
    pub(crate) fn drain(&mut self, out: &mut Vec<Output>) {
        match self {
            Role::Directory(_, fx) => out.extend(fx.drain(..).filter_map(directory_output)),
            Role::Brick(_, fx) => out.extend(fx.drain(..).map(brick_output)),
            Role::Gateway(_, fx) => out.extend(fx.drain(..).filter_map(gateway_output)),
            Role::Client(_, fx) => out.extend(fx.drain(..).map(client_output)),
            Role::Operator(operator) => operator.drain(out),
        }
    }

    pub(crate) fn counters(&self) -> Option<&Counters> {
        match self {
            Role::Operator(_) => None,
            Role::Directory(machine, _) => Some(machine.counters()),
            Role::Brick(machine, _) => machine.counters(),
            Role::Gateway(machine, _) => Some(machine.counters()),
            Role::Client(machine, _) => Some(machine.counters()),
        }
    }
}

fn directory_event(input: Input) -> Option<DirectoryEvent> {
    Some(match input {
        Input::Packet { from, packet } => DirectoryEvent::Packet { from, packet },
        Input::Down(node) => DirectoryEvent::Down(node),
        Input::Shard { shard, event } => DirectoryEvent::Shard { shard, event },
        Input::Stored { token } => DirectoryEvent::Stored { token: StoreToken(token), result: Ok(()) },
        _ => return None,
    })
}

fn brick_event(input: Input) -> Option<node::Event> {
    Some(match input {
        Input::Packet { from, packet } => node::Event::Packet { from, packet },
        Input::Up(node) => node::Event::Up(node),
        Input::Down(node) => node::Event::Down(node),
        Input::Disk { disk, done } => node::Event::Disk { disk, done },
        Input::Computed { number, made } => node::Event::Computed { number, made },
        _ => return None,
    })
}

fn gateway_event(input: Input) -> Option<GatewayEvent> {
    Some(match input {
        Input::Packet { from, packet } => GatewayEvent::Packet { from, packet },
        Input::Up(node) => GatewayEvent::Up(node),
        Input::Down(node) => GatewayEvent::Down(node),
        Input::Open { session, name } => GatewayEvent::Open { session, name },
        Input::SessionIo { session, tag, volume, io, payload } => {
            GatewayEvent::Io { session, tag, volume, stream: None, io, payload }
        }
        Input::Computed { number, made } => GatewayEvent::Computed { number, made },
        Input::Put { tag, put } => GatewayEvent::Put { tag, put },
        Input::Get { tag, get } => GatewayEvent::Get { tag, get },
        Input::Object { tag, wish } => GatewayEvent::Object { tag, wish },
        _ => return None,
    })
}

fn client_event(input: Input) -> Option<ClientEvent> {
    Some(match input {
        Input::Packet { from, packet } => ClientEvent::Packet { from, packet },
        Input::Up(node) => ClientEvent::Up(node),
        Input::Down(node) => ClientEvent::Down(node),
        Input::Gone(node) => ClientEvent::Gone(node),
        Input::ClientIo { tag, io, payload } => ClientEvent::Io { tag, io, payload },
        _ => return None,
    })
}

fn directory_output(effect: DirectoryEffect) -> Option<Output> {
    Some(match effect {
        DirectoryEffect::Send { to, packet } => Output::Send { to, packet },
        DirectoryEffect::Store { token, puts } => Output::Store { token: token.0, puts },
        DirectoryEffect::Shard { shard, effect } => Output::Shard { shard, effect },
        DirectoryEffect::Tell(_) => return None,
    })
}

fn brick_output(effect: node::Effect) -> Output {
    match effect {
        node::Effect::Send { to, packet } => Output::Send { to, packet },
        node::Effect::Address { node, .. } => Output::Address(node),
        node::Effect::Disk { disk, io, due } => Output::Disk { disk, io, due },
        node::Effect::Compute { number, computation } => Output::Compute { number, computation },
        node::Effect::Ready => Output::Ready,
        node::Effect::Failed { why } => Output::Failed(why),
    }
}

fn gateway_output(effect: GatewayEffect) -> Option<Output> {
    Some(match effect {
        GatewayEffect::Send { to, packet } => Output::Send { to, packet },
        GatewayEffect::Address { node, .. } => Output::Address(node),
        GatewayEffect::Opened { session, volume } => {
            Output::Opened { session, volume: volume.ok().map(|volume| volume.id) }
        }
        GatewayEffect::Compute { number, computation } => Output::Compute { number, computation },
        GatewayEffect::Reply { tag, result, payload, .. } => Output::Reply { tag, result, payload },
        GatewayEffect::Segment { tag, segment } => Output::Segment { tag, segment },
        GatewayEffect::Object { tag, news } => Output::Object { tag, news },
        GatewayEffect::Listed { .. } | GatewayEffect::Changed { .. } => return None,
    })
}

fn client_output(effect: ClientEffect) -> Output {
    match effect {
        ClientEffect::Send { to, packet } => Output::Send { to, packet },
        ClientEffect::Address { node, .. } => Output::Address(node),
        ClientEffect::Forget(node) => Output::Forget(node),
        ClientEffect::Opened { volume } => Output::Attached(volume.is_ok()),
        ClientEffect::Reply { tag, result, payload } => Output::Reply { tag, result, payload },
    }
}
