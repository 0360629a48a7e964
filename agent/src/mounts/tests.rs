//! The table is read as the kernel writes it.

use super::{Mounted, parse_line, unescape};
use std::path::PathBuf;

#[test]
fn a_line_tells_where_and_with_whom() {
    let line = "36 35 98:0 /sub /mnt/a\\040b rw,noatime shared:7 master:1 - ext3 /dev/root rw";
    let expected = Mounted {
        id: 36,
        point: PathBuf::from("/mnt/a b"),
        is_shared: true,
        is_slave: true,
        kind: "ext3".to_owned(),
        options: "rw".to_owned(),
    };
    assert_eq!(parse_line(line), Some(expected));
    let private = parse_line("36 35 0:5 / /proc rw - proc proc rw").unwrap();
    assert!(!private.is_shared && !private.is_slave);
    assert_eq!(parse_line("36 35 0:5"), None);
}

#[test]
fn white_space_is_read_as_the_table_writes_it() {
    assert_eq!(unescape("/a\\040b\\134c"), "/a b\\c");
    assert_eq!(unescape("/plain\\"), "/plain\\");
    assert_eq!(unescape("/caf\\303\\251"), "/café");
}
