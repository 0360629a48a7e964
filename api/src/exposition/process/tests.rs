//! The kernel's own words, read.

use super::*;

const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max open files            1024                 524288               files     
Max address space         unlimited            unlimited            bytes     
";
const NETSTAT: &str = "\
TcpExt: SyncookiesSent InOctets
TcpExt: 1 2
IpExt: InNoRoutes InOctets OutOctets
IpExt: 0 512 1024
";

#[test]
fn limits_are_the_soft_ones() {
    assert_eq!(limit(LIMITS, "Max open files"), Some(1024.0));
    assert_eq!(limit(LIMITS, "Max address space"), Some(u64::MAX as f64));
    assert_eq!(limit(LIMITS, "Max of something else"), None);
}

#[test]
fn bytes_of_the_network_are_those_of_ip() {
    assert_eq!(octets(NETSTAT, "InOctets"), Some(512.0));
    assert_eq!(octets(NETSTAT, "OutOctets"), Some(1024.0));
    assert_eq!(octets("", "OutOctets"), None);
}
