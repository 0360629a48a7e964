//! The kernel's table, read.

use super::*;

const TABLE: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
  eth0:    5000      10    1    2    0     0          0         0     7000      20    3    4    0     0       0          0
cveth1:       1       1    0    0    0     0          0         0        1       1    0    0    0     0       0          0
veth12:       1       1    0    0    0     0          0         0        1       1    0    0    0     0       0          0
";

#[test]
fn what_is_counted_elsewhere_is_left_out() {
    let all = parse(TABLE);
    assert_eq!(all.len(), 1);
    let stats = stats(&all, At::default()).unwrap();
    assert_eq!(
        serde_json::to_string(&stats).unwrap(),
        "{\"time\":\"1970-01-01T00:00:00Z\",\"name\":\"eth0\",\"rxBytes\":5000,\"rxErrors\":1,\
         \"txBytes\":7000,\"txErrors\":3,\"interfaces\":[{\"name\":\"eth0\",\"rxBytes\":5000,\
         \"rxErrors\":1,\"txBytes\":7000,\"txErrors\":3}]}"
    );
    assert!(super::stats(&parse(""), At::default()).is_none());
}
