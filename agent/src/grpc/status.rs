//! How a call ended, in the words of Go's library.

use std::fmt;

/// `grpc-status`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Code(pub u32);

impl Code {
    pub const OK: Self = Self(0);
    pub const CANCELED: Self = Self(1);
    pub const UNKNOWN: Self = Self(2);
    pub const INVALID_ARGUMENT: Self = Self(3);
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    pub const NOT_FOUND: Self = Self(5);
    pub const PERMISSION_DENIED: Self = Self(7);
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    pub const FAILED_PRECONDITION: Self = Self(9);
    pub const ABORTED: Self = Self(10);
    pub const UNIMPLEMENTED: Self = Self(12);
    pub const INTERNAL: Self = Self(13);
    pub const UNAVAILABLE: Self = Self(14);
    pub const UNAUTHENTICATED: Self = Self(16);

    /// By number.
    const NAMES: [&str; 17] = [
        "OK",
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    ];

    /// For an answer that is HTTP's alone, as gRPC's specification maps them.
    pub fn of_http(status: http::StatusCode) -> Self {
        match status.as_u16() {
            400 => Self::INTERNAL,
            401 => Self::UNAUTHENTICATED,
            403 => Self::PERMISSION_DENIED,
            404 => Self::UNIMPLEMENTED,
            429 | 502..=504 => Self::UNAVAILABLE,
            _ => Self::UNKNOWN,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = usize::try_from(self.0).ok();
        match name.and_then(|number| Self::NAMES.get(number)) {
            Some(name) => f.write_str(name),
            None => write!(f, "Code({})", self.0),
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("rpc error: code = {code} desc = {message}")]
pub struct Status {
    pub code: Code,
    pub message: String,
}

impl Status {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::INTERNAL, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::UNAVAILABLE, message)
    }
}

/// `grpc-message` is percent-encoded UTF-8. What is malformed stands as it is.
pub fn decode_message(encoded: &[u8]) -> String {
    let decoded = percent_encoding::percent_decode(encoded);
    decoded.decode_utf8_lossy().into_owned()
}
