//! The requests that a record of `watch` keeps.

use std::path::Path;

use record::{Culprit, Protocol, Served};
use serde_json::Value;
use units::Nanos;

pub fn read(folder: &Path) -> Vec<Served> {
    let text = std::fs::read_to_string(folder.join("served.ndjson")).unwrap();
    text.lines().map(|line| row(&serde_json::from_str(line).unwrap())).collect()
}

fn row(v: &Value) -> Served {
    let n = |k: &str| v[k].as_u64().unwrap();
    let addr = |k: &str| v[k].as_str().map(|s| s.parse().unwrap());
    let mut parts = [Nanos::ZERO; 10];
    for (i, part) in parts.iter_mut().enumerate() {
        *part = Nanos(v["parts"][i].as_u64().unwrap());
    }
    let c = &v["culprit"];
    Served {
        connection: n("connection"),
        peer: addr("peer"),
        local: addr("local"),
        n: n("n"),
        arrived: v["arrived"].as_u64().map(Nanos),
        read: Nanos(n("read")),
        first_sent: Nanos(n("first_sent")),
        done: Nanos(n("done")),
        parts,
        preempted: Nanos(n("preempted")),
        preemptions: n("preemptions") as u32,
        culprit: c.is_array().then(|| Culprit {
            pid: c[0].as_u64().unwrap() as u32,
            comm: c[1].as_str().unwrap().to_owned(),
            time: Nanos(c[2].as_u64().unwrap()),
        }),
        pid: n("pid") as u32,
        tid: n("tid") as u32,
        hand_offs: n("hand_offs") as u16,
        protocol: Protocol::from_name(v["protocol"].as_str().unwrap()).unwrap(),
        digest: n("digest") as u32,
        status: v["status"].as_u64().map(|s| s as u16),
        class: v["class"].as_i64(),
        request_bytes: n("request_bytes"),
        response_bytes: n("response_bytes"),
    }
}
