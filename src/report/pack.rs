//! What is to be said about an evidence packet.

use crate::pack::check::Checked;
use crate::pack::init::Begun;
use crate::pack::make::Packed;
use crate::report::table::Paint;
use std::fmt::Write as _;
use std::path::Path;
use tki_text::printable;

/// The most files that are named as left out without `-v`.
const NAMED: usize = 20;

/// A packet that was made; with `verbose` everything that it leaves out.
pub fn packed(packed: &Packed, verbose: bool, paint: Paint) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "packet     {}", path(&packed.packet));
    let _ = writeln!(out, "as of      {}", packed.as_of);
    let _ = writeln!(out, "items      {}, {} bytes", packed.items, packed.bytes);
    let _ = writeln!(out, "claims     {}", packed.claims);
    let _ = writeln!(out, "digest     sha256:{}", packed.sha256);
    out += &need(packed.memory_bytes, packed.out_bytes);
    for id in &packed.broken_chains {
        let _ = writeln!(
            out,
            "{} {id} is derived from what is no item: the inspector will not use it",
            paint.doubt("warning   ")
        );
    }
    let most = if verbose { usize::MAX } else { NAMED };
    out += &left_out(&packed.left_out, most);
    if packed.more_left_out {
        out += "left out   and more, which was not looked at\n";
    }
    out
}

/// A packet that was checked.
pub fn checked(checked: &Checked, paint: Paint) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "packet     {}", path(&checked.packet));
    let _ = writeln!(out, "items      {}", checked.items);
    let _ = writeln!(out, "claims     {}", checked.claims);
    let _ = writeln!(out, "digest     sha256:{}", checked.sha256);
    out += &need(checked.memory_bytes, checked.out_bytes);
    for problem in &checked.problems {
        let _ = writeln!(
            out,
            "{}      {}: {}",
            paint.bad("wrong"),
            printable(&problem.place, 200),
            printable(&problem.problem.to_string(), 400)
        );
    }
    if checked.more {
        let _ = writeln!(out, "{}      and more", paint.bad("wrong"));
    }
    if checked.problems.is_empty() {
        let _ = writeln!(
            out,
            "{}         every file and every place is as packet.json says",
            paint.good("ok")
        );
    } else {
        out +=
            "next: make the packet again with `tki-attest pack`, or ask for it as it was packed\n";
    }
    out
}

/// A `claims.toml` that was written.
pub fn begun(begun: &Begun) -> String {
    let mut out = format!(
        "claims     {}\nitems      {}\n",
        path(&begun.claims),
        begun.items
    );
    out += &left_out(&begun.left_out, NAMED);
    out + "next: say in it what is claimed, as_of and captured_by, then `tki-attest pack DIR`\n"
}

fn need(memory: u64, out: u64) -> String {
    const KIB: u64 = 1024;
    format!(
        "needs      at most {} KiB of memory, {} KiB for the report\n",
        memory.div_ceil(KIB),
        out.div_ceil(KIB)
    )
}

fn left_out(paths: &[String], most: usize) -> String {
    let mut out = String::new();
    for path in paths.iter().take(most) {
        let _ = writeln!(out, "left out   {}", printable(path, 200));
    }
    if paths.len() > most {
        let _ = writeln!(out, "left out   and {} more", paths.len() - most);
    }
    out
}

fn path(path: &Path) -> String {
    printable(&path.display().to_string(), 400)
}
