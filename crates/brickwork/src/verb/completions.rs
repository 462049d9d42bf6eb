//! `brickwork completions`: a script that teaches a shell the command line.

use crate::args::Cli;
use anyhow::Result;
use clap::CommandFactory;
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

/// Prints the script.
pub fn run(args: Args) -> Result<()> {
    clap_complete::generate(args.shell, &mut Cli::command(), "brickwork", &mut std::io::stdout());
    Ok(())
}
