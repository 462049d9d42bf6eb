//! How each NBD command is carried out: what a read, write, trim, flush and so on asks of the machine, and what the client
//! is answered.

use base::{BLOCK_U64, Payload};
use nbd::{Command, Errno, Extent, Reply, RequestError};
use wire::{Io, IoError, IoReply};

/// Requests by what they do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    Other,
}

/// What becomes of a command.
pub(super) enum Carried {
    /// The machine carries it out, and answers.
    Out { kind: Kind, io: Io, payload: Payload },
    /// There is nothing to be done: the client is answered at once.
    Already,
}

/// What a command asks of the machine.
pub(super) fn carry_out(command: Command) -> Carried {
    let other = |io| Carried::Out { kind: Kind::Other, io, payload: Payload::new() };
    match command {
        Command::Read { offset, length } => {
            Carried::Out { kind: Kind::Read, io: Io::Read { offset, length }, payload: Payload::new() }
        }
        // An acknowledged write is durable at once, so that FUA adds nothing.
        Command::Write { offset, payload, .. } => {
            Carried::Out { kind: Kind::Write, io: Io::Write { offset }, payload }
        }
        Command::WriteZeroes { offset, length, .. } => other(Io::Zero { offset, length: length.into() }),
        Command::Trim { offset, length, .. } => {
            trimmed(offset, length.into()).map_or(Carried::Already, other)
        }
        Command::BlockStatus { offset, length, .. } => other(Io::Allocation { offset, length }),
        // Nothing that was acknowledged waits for a flush, and there is no cache to be warmed here.
        Command::Flush | Command::Cache { .. } => Carried::Already,
    }
}

/// What the client is answered when the machine has answered a command of this kind.
pub(super) fn reply(
    kind: Kind,
    result: Result<IoReply, IoError>,
    payload: Payload,
) -> Result<Reply, RequestError> {
    match result {
        Ok(IoReply::Allocation { runs }) => Ok(Reply::Status(runs.into_iter().map(extent).collect())),
        Ok(IoReply::Done) if kind == Kind::Read => Ok(Reply::Data(payload)),
        Ok(IoReply::Done) => Ok(Reply::Done),
        Err(error) => Err(RequestError::new(errno(error), error.to_string())),
    }
}

/// A trim frees the whole blocks of its range. It says that content is not needed, so that what it covers of a block is left
/// as it is: freeing that would mean to write.
fn trimmed(offset: u64, length: u64) -> Option<Io> {
    let (first, end) = (offset.next_multiple_of(BLOCK_U64), (offset + length) / BLOCK_U64 * BLOCK_U64);
    (first < end).then(|| Io::Zero { offset: first, length: end - first })
}

fn extent((length, data): (u64, bool)) -> Extent {
    Extent { length, hole: !data, zero: !data }
}

fn errno(error: IoError) -> Errno {
    match error {
        IoError::OutOfRange => Errno::Invalid,
        IoError::NoSpace => Errno::NoSpace,
        IoError::NoVolume => Errno::Shutdown,
        IoError::ReadOnly => Errno::NotPermitted,
        IoError::Unreadable | IoError::Failed | IoError::TimedOut => Errno::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trim_is_rounded_inward() {
        let zero = |offset, length| Some(Io::Zero { offset, length });
        assert_eq!(trimmed(0, 4096), zero(0, 4096));
        assert_eq!(trimmed(1, 12287), zero(4096, 8192));
        assert_eq!(trimmed(4095, 4098), zero(4096, 4096));
        assert_eq!(trimmed(512, 4096), None);
        assert_eq!(trimmed(4096, 4095), None);
    }
}
