//! The network's tables and the limits, in the kernel's form. A namespace in which
//! nobody can open a socket has carried nothing.

use super::{Found, number, shown};
use crate::evidence::Evidence;
use crate::facts;
use alloc::string::ToString;
use alloc::vec::Vec;

/// What `/proc/net/dev` begins with.
const DEVICES: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo \
colls carrier compressed
";

/// What `/proc/net/route` is where there is no route, without the blanks at its end.
const NO_ROUTE: &str =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";

/// The columns of a row of `/proc/net/ipv6_route`, but for the device: hexadecimal
/// numbers of so many digits.
const ROUTE_COLUMNS: [usize; 9] = [32, 2, 32, 2, 32, 8, 8, 8, 8];

pub fn check(found: &mut Found, evidence: &Evidence) {
    let raw = &evidence.raw;
    devices(found, &raw.proc_net_dev, "raw.proc_net_dev");
    let first = raw.proc_net_route.split('\n').next().unwrap_or_default();
    let good = raw.proc_net_route.ends_with('\n') && first.trim_end_matches(' ') == NO_ROUTE;
    found.must(good, "raw.proc_net_route", || shown(first));
    for line in raw.proc_net_ipv6_route.lines() {
        found.must(is_ipv6_route(line), "raw.proc_net_ipv6_route", || {
            shown(line)
        });
    }
    let mut keys = raw.env_keyset.windows(2);
    let good = keys.all(|pair| pair[0] < pair[1]);
    found.must(good, "raw.env_keyset", || {
        "not sorted, or one is there twice".into()
    });
    limits(found, evidence);
}

/// A table of interfaces; `lo` alone has carried nothing.
pub fn devices(found: &mut Found, text: &str, fields: &'static str) {
    let rows = text.strip_prefix(DEVICES).filter(|_| text.ends_with('\n'));
    found.must(rows.is_some(), fields, || {
        "not a table of interfaces".into()
    });
    let rows: Vec<&str> = rows.unwrap_or_default().lines().collect();
    for row in &rows {
        let numbers = row
            .split_once(':')
            .map(|(_, numbers)| numbers.split_whitespace());
        let numbers: Vec<Option<u64>> = numbers.into_iter().flatten().map(number).collect();
        let good = numbers.len() == 16 && numbers.iter().all(Option::is_some);
        found.must(good, fields, || shown(row));
        if let [only] = rows.as_slice()
            && only.trim_start().starts_with("lo:")
        {
            let silent = numbers.iter().all(|count| *count == Some(0));
            found.must(silent, fields, || "something went through lo".into());
        }
    }
}

fn is_ipv6_route(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_hex = |(word, digits): (&&str, usize)| {
        word.len() == digits && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    words.len() == ROUTE_COLUMNS.len() + 1 && words.iter().zip(ROUTE_COLUMNS).all(is_hex)
}

/// `/proc/self/limits`: every row once, and those that were set as they were set.
fn limits(found: &mut Found, evidence: &Evidence) {
    const FIELDS: &str = "raw.proc_self_limits";
    const WIDTH: usize = 26;
    let text = &evidence.raw.proc_self_limits;
    let mut names: Vec<&str> = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let (name, rest) = line.split_at_checked(WIDTH).unwrap_or((line, ""));
        let values: Vec<&str> = rest.split_whitespace().take(2).collect();
        let is_limit = |value: &&str| *value == "unlimited" || number(value).is_some();
        let good = match place {
            0 => line
                .split_whitespace()
                .eq("Limit Soft Limit Hard Limit Units".split(' ')),
            _ => values.len() == 2 && values.iter().all(is_limit) && !names.contains(&name),
        };
        found.must(good && names.len() < 64, FIELDS, || shown(line));
        names.truncate(64);
        names.push(name);
    }
    found.must(names.len() > 1 && text.ends_with('\n'), FIELDS, || {
        "there is none".into()
    });
    let core = evidence
        .sandbox
        .configured
        .ulimits
        .iter()
        .find(|limit| limit.name == "core");
    if let Some(core) = core {
        let wanted = (core.soft.to_string(), core.hard.to_string());
        let is_same = |(soft, hard): (&str, &str)| (soft, hard) == (&wanted.0, &wanted.1);
        let good = facts::limit(text, "Max core file size").is_some_and(is_same);
        found.must(
            good,
            "raw.proc_self_limits, sandbox.configured.ulimits",
            || "the size of a core file".into(),
        );
    }
}
