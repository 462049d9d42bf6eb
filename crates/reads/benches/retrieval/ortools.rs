//! OR-tools' maximum flow, in a Python process beside the bench: see `tests/retrieval/speed.py`.

use crate::drawn::Instance;
use crate::json;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Ortools {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
}

impl Ortools {
    /// Starts it, and installs it below the target folder if it is not there. Or says why it is not to be had.
    pub(crate) fn start() -> Result<Ortools, String> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/retrieval");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../xtask/ortools");
        let mut command = Command::new("python3");
        command.arg(scripts.join("with_ortools.py")).arg(folder).arg(scripts.join("speed.py"));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("python3: {error}"))?;
        let input = child.stdin.take().map(BufWriter::new);
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut ortools = Ortools { child, input, output };
        match ortools.line().as_str() {
            "ready" => Ok(ortools),
            "" => Err("the script ended without a word".to_owned()),
            reason => Err(reason.to_owned()),
        }
    }

    /// How many microseconds one flow takes at the last arrival of each instance, in the mean.
    pub(crate) fn microseconds(&mut self, instances: &[(Instance, u64)]) -> f64 {
        let input = self.input.as_mut().expect("it is open until the end");
        for (instance, last_ns) in instances {
            writeln!(input, "{}", json::line(instance, *last_ns)).expect("the script reads on");
        }
        writeln!(input).and_then(|()| input.flush()).expect("the script reads on");
        self.line().parse().expect("the script answers with a number")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the script writes text");
        line.trim().to_owned()
    }
}

impl Drop for Ortools {
    fn drop(&mut self) {
        // The end of its input is the end of the script.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
