//! What the reads of a gateway cost it: messages, bytes, second questions.

use super::answer::Answer;
use wire::{Message, ReadOutcome};

/// What a [`Message::Read`] takes as bytes of a message, and what a contest adds.
const QUESTION_BYTES: u64 = 58;
const CONTEST_BYTES: u64 = 13;

/// Counts since the gateway began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Reads of one unit (or of mirrors) that ended with content.
    pub reads: u64,
    /// Questions sent for them, those for stamps alone and to reconstruct among them.
    pub questions: u64,
    /// Bytes of these messages.
    pub bytes_sent: u64,
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
    /// A read ended with content.
    pub(super) fn on_read(&mut self) {
        self.reads += 1;
    }

    /// A second member is asked.
    pub(super) fn on_rescue(&mut self) {
        self.rescues += 1;
    }

    /// A row is read in place of a brick.
    pub(super) fn on_reconstruction(&mut self) {
        self.reconstructions += 1;
    }

    /// Content came to a read that was answered before.
    pub(super) fn on_duplicate(&mut self, bytes: u64) {
        self.duplicate_answers += 1;
        self.bytes_received += bytes;
    }

    pub(super) fn on_question(&mut self, message: &Message) {
        if let Message::Read { contest, .. } = message {
            self.questions += 1;
            self.bytes_sent += wire::frame::HEADER_BYTES as u64
                + QUESTION_BYTES
                + if contest.is_some() { CONTEST_BYTES } else { 0 };
        }
    }

    pub(super) fn on_answer(&mut self, answer: &Answer) {
        if let Answer::Read(outcome, content) = answer {
            self.answers += 1;
            if matches!(outcome, ReadOutcome::Done { .. } | ReadOutcome::Older { .. }) {
                self.bytes_received += content.len() as u64;
            }
        }
    }

    /// By the names that metrics have.
    pub fn all(&self) -> [(&'static str, u64); 8] {
        [
            ("brickwork_unit_reads_total", self.reads),
            ("brickwork_read_questions_total", self.questions),
            ("brickwork_read_question_bytes_total", self.bytes_sent),
            ("brickwork_read_answers_total", self.answers),
            ("brickwork_read_answer_bytes_total", self.bytes_received),
            ("brickwork_read_rescues_total", self.rescues),
            ("brickwork_read_duplicate_answers_total", self.duplicate_answers),
            ("brickwork_read_reconstructions_total", self.reconstructions),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GroupId, ViewNumber, VolumeId};
    use wire::{Contest, Slots, Span, Wire};

    #[test]
    fn questions_are_as_long_as_their_messages() {
        let contest = Contest { number: 7, holders: Slots::all(3), tied: false };
        for contest in [None, Some(contest)] {
            let message = Message::Read {
                operation: 1,
                group: GroupId(1),
                view: ViewNumber(1),
                span: Span { volume: VolumeId(1), lba: 0, count: 1 },
                width: 1,
                stamps: false,
                content: true,
                contest,
                service: wire::Service::default(),
                sight: wire::Sight::Decided,
            };
            let mut traffic = Traffic::default();
            traffic.on_question(&message);
            assert_eq!(
                (traffic.questions, traffic.bytes_sent),
                (1, (wire::frame::HEADER_BYTES + message.to_bytes().len()) as u64)
            );
        }
    }
}
