//! The table: which module at the root of the crate may import which, and why.

/// What a module may import.
#[derive(Debug)]
pub struct Wall {
    /// The module, at the root of the crate.
    pub module: &'static str,
    /// Modules or submodules, each with the reason.
    pub may: &'static [(&'static str, &'static str)],
}

const FAILURE: (&str, &str) = ("failure", "what a person is told");
const CLOCK: (&str, &str) = ("clock", "times in evidence and in names");
const EXIT: (&str, &str) = ("exit", "the exit code");
const IMAGE: (&str, &str) = ("image", "the image that containers are made from");
const RANDOM: (&str, &str) = ("random", "nonces and ids");
const DEADLINE: (&str, &str) = ("deadline", "waits that Ctrl-C ends");
const EXECUTABLE: (&str, &str) = ("executable", "the digest of this tool");

/// The table, from the base upwards.
pub const WALLS: &[Wall] = &[
    Wall {
        module: "exit",
        may: &[],
    },
    Wall {
        module: "failure",
        may: &[EXIT],
    },
    Wall {
        module: "clock",
        may: &[],
    },
    Wall {
        module: "deadline",
        may: &[],
    },
    Wall {
        module: "random",
        may: &[FAILURE],
    },
    Wall {
        module: "files",
        may: &[],
    },
    Wall {
        module: "executable",
        may: &[FAILURE],
    },
    Wall {
        module: "diff",
        may: &[],
    },
    Wall {
        module: "image",
        may: &[FAILURE, EXIT, ("files", "contexts, layouts and archives")],
    },
    Wall {
        module: "state",
        may: &[CLOCK, ("files", "the file of state")],
    },
    Wall {
        module: "sandbox",
        may: &[FAILURE, ("files", "profile files")],
    },
    Wall {
        module: "verify",
        may: &[
            FAILURE,
            EXIT,
            CLOCK,
            ("files", "what a verifier brings along"),
            ("image", "the image that must have been used"),
            ("sandbox", "the profiles that this tool vouches for"),
        ],
    },
    Wall {
        module: "trust",
        may: &[
            FAILURE,
            EXIT,
            CLOCK,
            RANDOM,
            DEADLINE,
            ("files", "keys and envelopes"),
            ("verify", "evidence that is false is not signed"),
        ],
    },
    Wall {
        module: "host",
        may: &[
            FAILURE,
            CLOCK,
            ("files", "directories that are held, files about the host"),
        ],
    },
    Wall {
        module: "engine",
        may: &[
            FAILURE,
            CLOCK,
            ("files", "files beside engines"),
            IMAGE,
            (
                "host",
                "processes, control groups and directories of this host",
            ),
            (
                "sandbox",
                "its user and removed variables; settings, in a test",
            ),
        ],
    },
    Wall {
        module: "launch",
        may: &[
            FAILURE,
            ("files", "a directory that is held"),
            IMAGE,
            (
                "host",
                "scratch directories, the janitor, what marks a process",
            ),
            ("sandbox::profile", "the user inside"),
            ("engine", "the container"),
        ],
    },
    Wall {
        module: "attest",
        may: &[
            FAILURE,
            CLOCK,
            RANDOM,
            EXECUTABLE,
            ("files", "evidence, written whole"),
            IMAGE,
            ("state", "what the run before has seen of the gate"),
            (
                "verify",
                "the request that is answered, the check of what is written",
            ),
            ("trust", "the key that signs, the name of the envelope"),
            ("sandbox", "the profile and its settings"),
            ("host", "the outside witness, canaries, the venue"),
            ("engine", "the choice of an engine, what it offers and says"),
            ("launch", "a container from launch to end"),
        ],
    },
    Wall {
        module: "inspect",
        may: &[
            FAILURE,
            EXIT,
            CLOCK,
            RANDOM,
            EXECUTABLE,
            ("files", "the packet, its report, written whole"),
            IMAGE,
            (
                "verify",
                "the decision on the sandbox, what the launcher brings",
            ),
            ("sandbox", "limits, the profile that is launched"),
            ("host", "the venue as it is now, the janitor"),
            ("engine", "the choice of an engine, the container"),
            ("launch", "a container from launch to end"),
            (
                "attest",
                "evidence on the spot, where the engine is, what is told",
            ),
        ],
    },
    Wall {
        module: "clean",
        may: &[
            FAILURE,
            CLOCK,
            ("state", "what runs remember"),
            ("host", "directories that no process holds"),
            ("engine", "containers and volumes of ours"),
        ],
    },
    Wall {
        module: "survey",
        may: &[
            FAILURE,
            CLOCK,
            RANDOM,
            DEADLINE,
            ("files", "files about surfaces and routes"),
            IMAGE,
            ("host", "programs, facts about the venue"),
            (
                "engine",
                "connections, where a Podman is, labels of a container",
            ),
        ],
    },
    Wall {
        module: "packet",
        may: &[
            FAILURE,
            EXIT,
            CLOCK,
            RANDOM,
            EXECUTABLE,
            ("files", "the packet"),
            IMAGE,
            ("sandbox", "the profile and its settings"),
            ("engine::local", "the profile as a program"),
            ("survey", "what was found here"),
        ],
    },
    Wall {
        module: "pack",
        may: &[
            FAILURE,
            ("clock", "the moment, if it is to be now; times of files"),
            ("files", "the items and the packet"),
        ],
    },
    Wall {
        module: "report",
        may: &[
            FAILURE,
            EXIT,
            ("diff", "what changed"),
            ("sandbox", "what was said of a seccomp profile"),
            ("verify", "a decision"),
            ("survey", "what was found here"),
            ("pack", "an evidence packet"),
            ("attest::events", "what a run tells while it goes on"),
            ("attest::offers", "what an engine offers"),
            ("inspect", "what an inspection came to"),
        ],
    },
    Wall {
        module: "cli",
        may: &[
            ("image", "the image's usual name, where it comes from"),
            ("trust::passphrase", "where a passphrase comes from"),
            ("engine", "addresses, the gate, the longest run"),
            ("packet", "whom a packet is for"),
            ("pack", "the moment that a packet is judged at"),
            ("report", "forms and colours"),
        ],
    },
    Wall {
        module: "commands",
        may: &[
            FAILURE,
            EXIT,
            CLOCK,
            RANDOM,
            DEADLINE,
            ("files", "inputs and results"),
            ("image", "builds and layouts"),
            ("state", "what is remembered and removed"),
            ("trust", "keys and signers"),
            ("diff", "a comparison"),
            ("sandbox", "profiles"),
            ("host", "the janitor, leftovers, the venue"),
            ("engine", "the choice of an engine"),
            ("attest", "a run"),
            ("inspect", "an inspection"),
            ("clean", "what is left of runs"),
            ("verify", "a verification"),
            ("survey", "a survey"),
            ("packet", "a packet"),
            ("pack", "an evidence packet"),
            ("report", "what is shown"),
            ("cli", "arguments"),
        ],
    },
    Wall {
        module: "main",
        may: &[
            EXIT,
            ("host", "the janitor's and the visitor's lives"),
            ("engine::local", "the keeper's life"),
            ("report", "a failure"),
            ("cli", "arguments"),
            ("commands", "one of them"),
        ],
    },
];

/// Submodules that import nothing of each other, in this direction, although it would close
/// no circle.
pub const APART: &[(&str, &str, &str)] = &[
    ("engine::api", "engine::local", DAEMON),
    ("engine::docker", "engine::local", DAEMON),
    ("engine::podman", "engine::local", DAEMON),
    ("engine::recover", "engine::local", DAEMON),
    ("engine::local", "engine::recover", DAEMON),
    ("engine::local", "engine::api", DAEMON),
    ("engine::local", "engine::docker", DAEMON),
    ("engine::local", "engine::podman", DAEMON),
    ("engine::docker", "engine::podman", SHARED),
    ("engine::podman", "engine::docker", SHARED),
    (
        "attest::container",
        "attest::neighbour",
        "a container knows the neighbour by its id",
    ),
];

const DAEMON: &str = "an engine with a daemon and one without share the contract alone";
const SHARED: &str = "what both need is in engine::api and engine::recover";
