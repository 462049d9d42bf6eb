//! Keeps the processors from dozing off between paced requests: to wake one takes a virtual machine up to a millisecond, which
//! is more than what is measured. What keeps them awake gives way to everything else, and costs throughput all the same:
//! closed loops, which leave no time to doze, are measured without.

use anyhow::{Context, Result, bail};
use job::process::end_with_parent;
use std::process::{Child, Command, Stdio};

/// Processors are awake until this ends.
pub(super) struct Awake(Vec<Child>);

impl Awake {
    /// An endless loop for each processor, under the policy for what runs only when nothing else does.
    pub(super) fn begin() -> Result<Awake> {
        let mut awake = Awake(Vec::new());
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let mut spinning = Command::new("chrt");
            spinning.args(["--idle", "0", "sh", "-c", "while :; do :; done"]);
            end_with_parent(&mut spinning);
            let spinning = spinning.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            awake.0.push(spinning.context(HINT)?);
        }
        Ok(awake)
    }

    /// What was measured counts only if the processors were awake to its end.
    pub(super) fn end(mut self) -> Result<()> {
        for child in &mut self.0 {
            if let Some(status) = child.try_wait()? {
                bail!("{HINT}: it ended before it was told to ({status})");
            }
        }
        Ok(())
    }
}

const HINT: &str = "`chrt --idle 0` (of util-linux) keeps the processors awake";

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
