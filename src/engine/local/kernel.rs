//! What the kernel says about a container that runs. A setting that was only
//! handed over, or promised, is read back from here, so that what is reported as
//! configured is what holds.

use crate::host::groups::group_limits;
use std::fs;
use std::path::Path;
use tki_evidence::described::local::Kernel;

/// What the kernel says about a process; `None` if it is gone.
pub fn ask(pid: i32) -> Option<Kernel> {
    let process = Path::new("/proc").join(pid.to_string());
    let read = |name: &str| fs::read_to_string(process.join(name)).ok();
    let output = |descriptor: &str| {
        let target = fs::read_link(process.join("fd").join(descriptor));
        target.map_or_else(
            |_| String::new(),
            |target| target.to_string_lossy().into_owned(),
        )
    };
    Some(Kernel {
        status: read("status")?,
        limits: read("limits")?,
        groups: group_limits(&read("cgroup")?),
        output: ["1", "2"].map(output).to_vec(),
    })
}
