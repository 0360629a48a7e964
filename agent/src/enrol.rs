//! How a node comes to its identity: a token first, a certificate from then on.

mod token;

pub use token::{Token, parse_token};
