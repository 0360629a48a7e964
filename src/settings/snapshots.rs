//! The snapshots that a server takes by itself.

use super::{BadSetting, parse};
use crate::cli::RingArgs;
use std::time::Duration;

const INTERVAL: &str = "snapshot-interval";
const INTERVAL_DEFAULT: Duration = Duration::from_secs(6 * 60 * 60);
/// A shorter one is a flash card's end, and no more of a help.
const INTERVAL_MIN: Duration = Duration::from_secs(10);
const RETENTION_DEFAULT: u32 = 5;
/// Each is as large as all objects.
const RETENTION_MAX: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Zero for never.
    pub every: Duration,
    pub kept: usize,
}

pub fn ring(args: &RingArgs) -> Result<Ring, BadSetting> {
    let every = match args.snapshot_interval.as_deref() {
        None => INTERVAL_DEFAULT,
        Some(text) => match parse::duration(INTERVAL, text)? {
            every if !every.is_zero() && every < INTERVAL_MIN => {
                return Err(BadSetting::new(
                    INTERVAL,
                    text,
                    "must be at least 10s, or 0",
                ));
            }
            every => every,
        },
    };
    const RETENTION: &str = "snapshot-retention";
    let given = args.snapshot_retention.as_deref();
    let kept = parse::count(RETENTION, given, RETENTION_DEFAULT)?;
    if kept > RETENTION_MAX {
        let expected = format!("must be at most {RETENTION_MAX}");
        return Err(BadSetting::new(RETENTION, &kept.to_string(), expected));
    }
    Ok(Ring {
        every,
        kept: kept as usize,
    })
}

#[cfg(test)]
mod tests;
