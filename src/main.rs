//! Coracle: Kubernetes small enough for the edge.
//!
//! Parses, validates, builds, runs, drains. What a command does is in the module of its name.

mod cli;
mod control_plane; // Store, API server, controllers and scheduler as one thing to start and drain.
mod controllers;
mod demo;
mod demo_page;
mod doctor; // What is wrong with this machine.
mod elevate;
mod images;
mod kubeconfigs;
mod leading; // Work that one of several processes does.
mod logging;
mod manifests; // Applies what lies in a directory.
mod node;
mod notify;
mod scheduler;
mod secrets;
mod secure_port; // Of a scheduler or controllers on their own.
mod settings;
mod settled; // Gives back memory that is not needed.
mod show;
mod snapshots;
mod tokens;
mod up;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use settings::{BadSetting, EXIT_USAGE};
use std::process::ExitCode;

/// How a command ended, short of success.
#[derive(Debug)]
enum Failure {
    Usage(BadSetting),
    Failed(anyhow::Error),
}

impl From<BadSetting> for Failure {
    fn from(bad: BadSetting) -> Self {
        Self::Usage(bad)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// That of glibc took a fifth of the server's processor time under load.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[allow(clippy::print_stderr)]
fn main() -> ExitCode {
    // The shim forks and joins namespaces, so it runs before any thread exists.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "shim") {
        std::process::exit(coracle_agent::runtime::shim_main(arguments.collect()));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Somebody who names no command wants to see what there is.
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprint!("{help}");
            return ExitCode::from(EXIT_USAGE);
        }
        Err(error) if error.use_stderr() => return usage(&first_line(&error)),
        Err(help) => help.exit(),
    };
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(bad)) => usage(&bad.to_string()),
        Err(Failure::Failed(error)) => {
            eprintln!("coracle: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Up(args) => up::run(*args),
        Command::Server(args) => control_plane::run(*args),
        Command::Controllers(args) => controllers::run(*args),
        Command::Scheduler(args) => scheduler::run(*args),
        Command::Agent(args) => node::run(*args),
        Command::Token(args) => tokens::run(args),
        Command::Secrets(args) => secrets::run(args),
        Command::Snapshot(args) => snapshots::run(*args),
        Command::Kubeconfig(args) => kubeconfigs::run(*args),
        Command::Image(args) => images::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completion { shell } => {
            let mut command = Cli::command();
            clap_complete::generate(shell, &mut command, "coracle", &mut std::io::stdout());
            Ok(())
        }
        Command::Version => {
            show::version();
            Ok(())
        }
        Command::Wipe { data_dir } => node::wipe(data_dir.as_deref()),
        Command::DemoPage { listen } => Ok(demo_page::serve(&listen)?),
    }
}

#[allow(clippy::print_stderr)]
fn usage(line: &str) -> ExitCode {
    eprintln!("coracle: {line}");
    ExitCode::from(EXIT_USAGE)
}

/// clap explains over several lines; a service's log wants one.
fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let is_hint = |line: &&&str| line.starts_with("Usage:") || line.starts_with("For more");
    let told: Vec<&str> = lines
        .iter()
        .take_while(|line| !is_hint(line))
        .copied()
        .collect();
    told.join(" ").trim_start_matches("error: ").to_owned()
}

/// The one multi-threaded runtime of a long-running command.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    settled::few_arenas();
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}
