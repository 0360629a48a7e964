//! The last word of a command.

use super::{size, status};
use crate::runtime::RuntimeError;

#[test]
fn the_exit_code_is_a_cause() {
    let command = ["sh".to_owned(), "-c".to_owned()];
    assert_eq!(status(&command, Ok(0))["status"], "Success");
    let failed = status(&command, Ok(3));
    assert_eq!(failed["reason"], "NonZeroExitCode");
    assert_eq!(failed["details"]["causes"][0]["message"], "3");
    let broken = status(&command, Err(RuntimeError::Failed("gone".into())));
    assert_eq!(broken["reason"], "InternalError");
}

#[test]
fn sizes_are_read() {
    let read = size(br#"{"Width":80,"Height":24}"#).unwrap();
    assert_eq!((read.width, read.height), (80, 24));
    assert!(size(b"{}").is_none());
}
