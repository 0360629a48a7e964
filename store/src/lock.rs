//! A lock on a file that whoever had it may be about to let go.

use std::fs::{File, TryLockError};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Nothing tells of a lock that is let go with a bound to the wait, so it is looked at.
/// `WouldBlock` when it is still held after `wait`.
#[allow(clippy::disallowed_methods)] // Bounds how long it waits.
pub(crate) fn lock_within(file: &File, wait: Duration) -> std::io::Result<()> {
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if waited < wait => {
                std::thread::sleep(LOOK_EVERY);
                waited += LOOK_EVERY;
            }
            ended => return ended.map_err(std::io::Error::from),
        }
    }
}
