//! The node: runs the pods bound to it and tells the API server how they are.
pub mod images;
pub mod runtime;
