//! Tables for people.

use super::*;
use serde_json::json;

#[test]
fn a_table_prints_as_kubectl_prints_it() {
    let given = json!({
        "columnDefinitions": [
            { "name": "Name", "priority": 0 },
            { "name": "IP", "priority": 1 },
            { "name": "Age", "priority": 0 },
        ],
        "rows": [
            { "cells": ["web-1", "10.42.0.2", "5s"] },
            { "cells": ["a-longer-name", null, "3m"] },
        ],
    });
    let narrow = "NAME            AGE\nweb-1           5s\na-longer-name   3m";
    assert_eq!(table(&given, false), narrow);
    assert!(table(&given, true).lines().next().unwrap().contains("IP"));
    assert!(table(&given, true).ends_with("<none>      3m"));
}
