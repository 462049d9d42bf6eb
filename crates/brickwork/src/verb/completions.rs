//! `brickwork completions`: a script that teaches a shell the command line.

use anyhow::Result;
use clap_complete::Shell;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  brickwork completions bash > ~/.local/share/bash-completion/completions/brickwork
  brickwork completions zsh > ~/.zfunc/_brickwork
  brickwork completions fish > ~/.config/fish/completions/brickwork.fish")]
pub struct Args {
    /// For which shell
    shell: Shell,
}

/// Prints the script for a command line.
pub fn run(args: Args, command_line: &mut clap::Command) -> Result<()> {
    clap_complete::generate(args.shell, command_line, "brickwork", &mut std::io::stdout());
    Ok(())
}
