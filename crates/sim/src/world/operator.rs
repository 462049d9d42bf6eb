//! The operator: asks questions of anyone until they are answered. It sets the cluster up and audits its end.

use super::event::{Input, Output};
use base::{NodeId, Time};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::{Message, Packet};

const RETRY: Duration = Duration::from_millis(300);

struct Question {
    to: NodeId,
    packet: Packet,
    due: Time,
}

#[derive(Default)]
pub(crate) struct Operator {
    questions: BTreeMap<u64, Question>,
    answers: BTreeMap<u64, Packet>,
    outputs: Vec<Output>,
    asked: u64,
}

impl Operator {
    /// Asks `to` what `message` makes of the question's number, which is returned.
    pub(crate) fn ask(&mut self, now: Time, to: NodeId, message: impl FnOnce(u64) -> Message) -> u64 {
        self.asked += 1;
        let packet = Packet::from(message(self.asked));
        self.outputs.push(Output::Address(to));
        self.outputs.push(Output::Send { to, packet: packet.clone() });
        self.questions.insert(self.asked, Question { to, packet, due: now + RETRY });
        self.asked
    }

    /// The answer to a question, once.
    pub(crate) fn answer(&mut self, question: u64) -> Option<Packet> {
        self.answers.remove(&question)
    }

    /// All answers so far, once.
    pub(crate) fn take_answers(&mut self) -> BTreeMap<u64, Packet> {
        core::mem::take(&mut self.answers)
    }

    /// Asks no more for what was not answered.
    pub(crate) fn give_up(&mut self) {
        self.questions.clear();
    }

    pub(crate) fn step(&mut self, now: Time, input: Input) {
        match input {
            Input::Packet { packet, .. } => {
                if let Some(number) =
                    operation(&packet.message).filter(|op| self.questions.remove(op).is_some())
                {
                    self.answers.insert(number, packet);
                }
            }
            Input::Up(node) => {
                self.questions.values_mut().filter(|q| q.to == node).for_each(|question| question.due = now);
            }
            _ => {}
        }
    }

    pub(crate) fn wake(&mut self, now: Time) {
        for question in self.questions.values_mut().filter(|question| question.due <= now) {
            question.due = now + RETRY;
            self.outputs.push(Output::Send { to: question.to, packet: question.packet.clone() });
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.questions.values().map(|question| question.due).min()
    }

    pub(crate) fn drain(&mut self, out: &mut Vec<Output>) {
        out.append(&mut self.outputs);
    }
}

/// The question that a message answers.
fn operation(message: &Message) -> Option<u64> {
    match message {
        Message::AdminDone { operation, .. }
        | Message::VolumeOpened { operation, .. }
        | Message::ReadDone { operation, .. } => Some(*operation),
        _ => None,
    }
}
