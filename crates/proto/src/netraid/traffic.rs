//! What the reads of a gateway cost it: messages, bytes, second questions.

use super::coordinator::Answer;
use wire::{Message, ReadOutcome};

/// Counts since the gateway began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Reads of one unit (or of mirrors) that ended with content.
    pub reads: u64,
    /// Questions sent for them, those for stamps alone and to reconstruct among them.
    pub questions: u64,
    /// Answers that came, of whatever kind.
    pub answers: u64,
    /// Bytes of content that came.
    pub bytes_received: u64,
    /// Second members that were asked since the first one, or all that were asked, took long.
    pub rescues: u64,
    /// Answers with content to reads that were answered before.
    pub duplicate_answers: u64,
    /// Units reconstructed since their brick was expected to take longer, or did.
    pub reconstructions: u64,
}

impl Traffic {
    pub(super) fn on_question(&mut self, message: &Message) {
        self.questions += u64::from(matches!(message, Message::Read { .. }));
    }

    pub(super) fn on_answer(&mut self, answer: &Answer) {
        if let Answer::Read(outcome, content) = answer {
            self.answers += 1;
            if matches!(outcome, ReadOutcome::Done { .. }) {
                self.bytes_received += content.len() as u64;
            }
        }
    }

    /// By name, for metrics.
    pub fn all(&self) -> [(&'static str, u64); 7] {
        [
            ("reads", self.reads),
            ("questions", self.questions),
            ("answers", self.answers),
            ("bytes_received", self.bytes_received),
            ("rescues", self.rescues),
            ("duplicate_answers", self.duplicate_answers),
            ("reconstructions", self.reconstructions),
        ]
    }
}
