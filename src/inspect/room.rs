//! What a packet takes, and what an attested sandbox has.

use crate::sandbox::limit::Limit;
use crate::sandbox::profile::Limits;
use tki_evidence::controller::Controller;
use tki_evidence::evidence::Sandbox;
use tki_evidence::settings::{ADDRESS_SPACE, Memory, Settings, memory_of};
use tki_inspector::caps::Need;

/// The unit of memory on every machine that this tool knows.
const PAGE: u64 = 4096;

/// What a sandbox has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its memory, in bytes; `u64::MAX` if nothing limits it.
    pub memory_bytes: u64,
    /// Its /out. A plain directory has no size, and is said to have the one of the need.
    pub out: Memory,
}

/// The sandbox has not the room that the packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the packet takes up to {memory} bytes of memory and {out} bytes of /out, and the sandbox has \
     {} and {}",
    .room.memory_bytes,
    .room.out.bytes
)]
pub struct TooSmall {
    /// What it has.
    pub room: Room,
    /// The memory that the packet takes, in whole pages.
    pub memory: u64,
    /// The size of /out that it takes.
    pub out: u64,
}

impl TooSmall {
    /// The limits to attest with.
    pub fn next(&self) -> String {
        format!(
            "attest with a --profile that says `[limits]`, `memory_bytes = {}` and `out_bytes = \
             {}`, or leave out --evidence and --profile: then evidence is made with limits that are \
             large enough",
            self.memory.max(self.room.memory_bytes.min(i64::MAX as u64)),
            self.out.max(self.room.out.bytes)
        )
    }
}

/// What the packet takes on an engine that cannot set these limits. Where the address space stands
/// in for memory, the inspector maps its memory in one piece, and finds the largest that fits in
/// steps of an eighth.
pub fn on(need: Need, lacks: &[Controller]) -> Need {
    match lacks.contains(&Controller::Memory) {
        true => Need {
            memory_bytes: need.memory_bytes.saturating_add(need.memory_bytes / 4),
            ..need
        },
        false => need,
    }
}

/// Limits under which a sandbox has room for this; those that the user chose stay as they are.
pub fn enlarged(limits: Limits, chosen: &[Limit], need: Need) -> Result<Limits, TooSmall> {
    let memory = as_limit(need.memory_bytes.next_multiple_of(PAGE));
    let out = need.out_bytes.next_multiple_of(PAGE);
    let grown = Limits {
        memory_bytes: match chosen.contains(&Limit::MemoryBytes) {
            true => limits.memory_bytes,
            false => limits.memory_bytes.max(memory),
        },
        out_bytes: match chosen.contains(&Limit::OutBytes) {
            true => limits.out_bytes,
            false => limits.out_bytes.max(out),
        },
        ..limits
    };
    let room = Room {
        memory_bytes: u64::try_from(grown.memory_bytes).unwrap_or(0),
        out: grown.out(),
    };
    enough(room, need).map(|()| grown)
}

/// The sandbox is large enough for the packet.
pub fn enough(room: Room, need: Need) -> Result<(), TooSmall> {
    match room.memory_bytes >= need.memory_bytes && room.out.bytes >= need.out_bytes {
        true => Ok(()),
        false => Err(TooSmall {
            room,
            memory: need.memory_bytes.next_multiple_of(PAGE),
            out: need.out_bytes.next_multiple_of(PAGE),
        }),
    }
}

/// What the sandbox had that was attested.
pub fn attested(sandbox: &Sandbox, need: Need) -> Room {
    let least = Memory {
        bytes: need.out_bytes.next_multiple_of(PAGE),
        files: Limits::default().out_files,
    };
    Room {
        memory_bytes: memory(&sandbox.declared),
        out: out(sandbox).unwrap_or(least),
    }
}

/// Where no control group limits memory, the address space stands in for it.
fn memory(settings: &Settings) -> u64 {
    let most = match settings.memory_bytes {
        0 => {
            let mut limits = settings.ulimits.iter();
            let space = limits.find(|limit| limit.name == "as");
            space.map(|limit| limit.soft.saturating_sub(ADDRESS_SPACE))
        }
        bytes => Some(bytes),
    };
    most.map_or(u64::MAX, |most| u64::try_from(most).unwrap_or(0))
}

/// The size of /out, if it has one: that of the engine's volume, or of the launcher's memory file
/// system.
fn out(sandbox: &Sandbox) -> Option<Memory> {
    let mut binds = sandbox.declared.binds.iter();
    let volume = binds.find(|bind| bind.target == "/out");
    let volume = volume.and_then(|bind| memory_of(&bind.options));
    let backing = &sandbox.out_backing;
    volume.or_else(|| match backing.kind.as_str() {
        "tmpfs" => memory_of(&format!("type=tmpfs,device=tmpfs,o={}", backing.reason)),
        _ => None,
    })
}

fn as_limit(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::profile::Profile;
    use crate::sandbox::seccomp::Seccomp;
    use crate::sandbox::settings::{do_without, settings};
    use tki_evidence::evidence::{GateReport, OutBacking};
    use tki_evidence::settings::{Bind, memory};

    fn need(memory_bytes: u64, out_bytes: u64) -> Need {
        Need {
            memory_bytes,
            out_bytes,
        }
    }

    #[test]
    fn limits_grow_with_the_packet_unless_somebody_chose_them() {
        let own = Limits::default();
        let small = enlarged(own, &[], need(1, 1)).unwrap();
        assert_eq!(small, own);
        let large = enlarged(own, &[], need((100 << 20) + 1, (9 << 20) + 1)).unwrap();
        assert_eq!(large.memory_bytes, (100 << 20) + 4096);
        assert_eq!(large.out_bytes, (9 << 20) + 4096);
        assert_eq!((large.pids, large.out_files), (own.pids, own.out_files));
        let chosen = [Limit::MemoryBytes];
        let refused = enlarged(own, &chosen, need(100 << 20, 1)).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("104857600") && said.contains("25165824"),
            "{said}"
        );
        assert!(refused.next().contains("memory_bytes = 104857600"));
        assert!(enlarged(own, &chosen, need(24 << 20, 9 << 20)).is_ok());
        let lacks = [Controller::Cpu, Controller::Memory];
        assert_eq!(on(need(8 << 20, 1), &lacks), need(10 << 20, 1));
        assert_eq!(on(need(1, 1), &lacks[..1]), need(1, 1));
    }

    #[test]
    fn what_was_attested_is_read_back() {
        let limits = Limits {
            memory_bytes: 64 << 20,
            out_bytes: 4 << 20,
            ..Limits::default()
        };
        let profile = Profile {
            seccomp: Seccomp::resolve("deny-by-default").unwrap(),
            limits,
        };
        let volume = Bind {
            options: memory(limits.out()),
            ..Bind::of_engine("", "/out", false)
        };
        let declared = settings(&profile, vec![volume], true);
        let mut sandbox = Sandbox {
            configured: declared.clone(),
            declared,
            command_line: Vec::new(),
            out_backing: OutBacking {
                kind: "tmpfs".into(),
                reason: String::new(),
                maker: "engine".into(),
            },
            gate: GateReport::default(),
        };
        let wanted = Room {
            memory_bytes: 64 << 20,
            out: limits.out(),
        };
        assert_eq!(attested(&sandbox, need(0, 0)), wanted);
        // The launcher's own, of which no setting tells the size.
        sandbox.declared.binds = vec![Bind::of_host("/run/x/out", "/out", false)];
        sandbox.out_backing = OutBacking {
            kind: "tmpfs".into(),
            reason: format!(
                "noexec,nosuid,nodev,size={},nr_inodes={}",
                limits.out_bytes, limits.out_files
            ),
            maker: "launcher".into(),
        };
        do_without(&mut sandbox.declared, &[Controller::Memory]);
        assert_eq!(attested(&sandbox, need(0, 0)), wanted);
        sandbox.out_backing.kind = "directory".into();
        assert_eq!(attested(&sandbox, need(0, 5000)).out.bytes, 8192);
        sandbox.declared.ulimits.clear();
        assert_eq!(attested(&sandbox, need(0, 0)).memory_bytes, u64::MAX);
    }
}
