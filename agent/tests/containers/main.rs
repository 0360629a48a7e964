//! Real containers through the embedded runtime: needs root and Debian's busybox-static.

mod exec;
mod limits;
mod restart;
mod run;
mod support;
