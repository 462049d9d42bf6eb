//! The one binary: everything it can do is in the library beside it.

fn main() -> std::process::ExitCode {
    brickwork_cli::run()
}
