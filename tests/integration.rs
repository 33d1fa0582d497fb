//! One binary for all tests that need an engine, root or another tool. Each module is a
//! capability. What needs none of them is in the binaries `offline` and `refusals`.

/// Acceptance tests of the sandbox itself, in a run of now.
mod acceptance;
/// What local users and owners of directories try while the tool runs.
mod attack;
/// The whole battery: controls that flip their probes, weakened profiles that fail.
mod battery;
/// Running the tool, engines and other tools; temporary directories.
mod common;
/// Attesting on a real Docker Engine: what must work.
mod docker;
/// Which engines are here, and all of them side by side.
mod engines;
/// Attesting when something is wrong: each fault has its message and its code.
mod faults;
/// Bundles of now: other tools read them, `verify` is watched, a generator edits them.
mod fresh;
/// gVisor: a kernel of its own, with the engine's seccomp profile and without.
mod gvisor;
/// The battery as root without a sandbox, in an emulated machine: nothing there changes.
mod harmless;
/// The image against skopeo, umoci, BuildKit, docker load and the OCI schemas.
mod image;
/// Inspections of packets on every engine, and what keeps one from beginning.
mod inspect;
/// The inspector: what it links, what it can ask the kernel for, what it does outside its sandbox.
mod inspector;
/// What is left behind when a run is interrupted, killed or abandoned.
mod leftovers;
/// Engines without a daemon: embedded and bubblewrap.
mod local;
/// The neighbour: what it furnishes for controls, and how it ends.
mod neighbour;
/// Packets: digests, plain command lines that are executed, workflows, manifests.
mod packet;
/// Attesting on a real Podman, with a service of its own or one that runs.
mod podman;
/// The prober: what it links, what it does outside its sandbox.
mod prober;
/// Engines that are reached over TLS, through ssh and by Docker's contexts.
mod remote;
/// Docker rights alone: users, containers with the socket, volumes.
mod rights;
/// Seccomp profiles on real engines.
mod seccomp;
/// What runs remember, and that it is ignored, forgotten and removed as it should.
mod state;
/// Surveys of engines and of write routes, and claims of venues.
mod survey;
/// Control groups of version 2, in an emulated machine.
mod version_2;
