//! Real containers through the embedded runtime: needs root and Debian's busybox-static.
#![allow(clippy::unwrap_used, clippy::print_stderr)] // A test fails loudly, or says why not.

mod attach;
mod confinement;
mod devices;
mod exec;
mod image_volumes;
mod limits;
mod processes;
mod propagation;
mod restart;
mod run;
mod support;
mod user_namespaces;
