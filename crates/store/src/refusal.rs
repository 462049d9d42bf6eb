//! The answer to a command that is not carried out.

use wire::disk::{Command, Reply, StoreError};

/// The answer to a command that is not carried out, if it wants one.
pub(crate) fn refusal(command: &Command, error: StoreError) -> Option<Reply> {
    Some(match *command {
        Command::Stage { token, .. } | Command::Mend { token, .. } | Command::Erase { token, .. } => {
            Reply::Staged { token, result: Err(error) }
        }
        Command::Read { token, .. } | Command::Verify { token, .. } => {
            Reply::Read { token, result: Err(error) }
        }
        Command::Allocation { token, .. } => Reply::Allocation { token, result: Err(error) },
        Command::Note { token, .. } | Command::Remember { token, .. } | Command::Barrier { token } => {
            Reply::Noted { token, result: Err(error) }
        }
        Command::Inventory { token, .. } => Reply::Inventory { token, result: Err(error) },
        Command::Destage { token, .. } => Reply::Destaged { token },
        Command::Apply { .. }
        | Command::Drop { .. }
        | Command::Discard { .. }
        | Command::Forget { .. }
        | Command::Refresh { .. } => return None,
    })
}
