//! Logs on standard error: human on a terminal, one JSON object a line otherwise.

use crate::settings::BadSetting;
use std::io::IsTerminal;
use tracing_subscriber::filter::EnvFilter;

/// Libraries that are silent unless the filter names them: this one warns of each handshake that is
/// tried again, where the agent says once that a node does not answer.
const QUIET: &str = "defguard_boringtun=off";

/// Sets up logging for the process; `given` is `--log`, `default` what this command logs else.
pub fn start(given: Option<&str>, default: &str) -> Result<(), BadSetting> {
    let text = given.unwrap_or(default);
    let filter = EnvFilter::builder().parse(format!("{QUIET},{text}"));
    let filter = filter.map_err(|_| {
        let expected = "must be error, warn, info, debug, trace, or a filter such as \
                        info,coracle_agent=debug";
        BadSetting::new("log", text, expected)
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.with_target(false).init();
    } else {
        builder.json().flatten_event(true).init();
    }
    Ok(())
}
