//! Measures an API server, or two in turn.

use std::process::ExitCode;

#[allow(clippy::print_stderr)] // Errors are for the terminal.
#[tokio::main]
async fn main() -> ExitCode {
    match Box::pin(coracle_bench::run(std::env::args_os())).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coracle-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
