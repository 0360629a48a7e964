//! What the kernel says about this process.

use super::text::Text;
use coracle_api::exposition::process::{Files, text as write};
use jiff::Timestamp;
use std::fs;

pub fn text(text: &mut Text, started: Timestamp) {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let files = Files {
        status: read("status"),
        stat: read("stat"),
        limits: read("limits"),
        netstat: read("net/netstat"),
        open_files: fs::read_dir("/proc/self/fd").map(Iterator::count).ok(),
    };
    write(text, &files, started);
}
