//! The shim as a program of its own, for the tests of this crate.

fn main() {
    let arguments = std::env::args_os().skip(1).collect();
    std::process::exit(coracle_agent::runtime::shim_main(arguments));
}
