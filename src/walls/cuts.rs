//! What was imported once and must not be again.

/// An import that was cut.
#[derive(Debug)]
pub struct Cut {
    /// The file that it was in, below `src`, as it is called now.
    pub file: &'static str,
    /// What was imported, as it was called then; where that leads to another module now,
    /// something else of the module that it was in.
    pub path: &'static str,
}

/// Every import that was cut to put the walls up.
pub const CUTS: &[Cut] = &[
    // A failure printed itself.
    cut("failure.rs", "crate::report::table::Paint"),
    cut("failure.rs", "crate::report::text::printable"),
    // What makes a text safe to print was the report's.
    cut("attest/conversation.rs", "crate::report::text::printable"),
    cut("attest/run.rs", "crate::report::text::printable"),
    cut("attest/whereabouts.rs", "crate::report::text::printable"),
    cut("host/venue.rs", "crate::report::text::printable"),
    cut("launch/container.rs", "crate::report::text::printable"),
    cut("engine/api/words.rs", "crate::report::text::printable"),
    cut("engine/api/contexts.rs", "crate::report::text::printable"),
    cut("engine/api/login.rs", "crate::report::text::printable"),
    cut("engine/local/state.rs", "crate::report::text::printable"),
    cut("engine/local/rootfs.rs", "crate::report::text::printable"),
    cut("engine/local/session.rs", "crate::report::text::printable"),
    cut("engine/podman/service.rs", "crate::report::text::printable"),
    cut("packet/template.rs", "crate::report::text::printable"),
    cut("state.rs", "crate::report::text::printable"),
    cut("survey/redact.rs", "crate::report::text::printable"),
    // The run showed its own progress.
    cut("attest/run.rs", "crate::report::progress::Progress"),
    cut("attest/container.rs", "crate::report::progress::Progress"),
    cut(
        "attest/conversation.rs",
        "crate::report::progress::Progress",
    ),
    cut("attest/memory.rs", "crate::report::progress::Progress"),
    // Forms and audiences were the command line's.
    cut("report/verification.rs", "crate::cli::Format"),
    cut("packet/write.rs", "crate::cli::Format"),
    // The choice of an engine, and a whole run, read the arguments themselves.
    cut("engine/choice.rs", "crate::cli::EngineArgs"),
    cut("image/source.rs", "crate::cli::ImageArgs"),
    cut("attest/one.rs", "crate::cli::RunArgs"),
    cut("attest/minimal.rs", "crate::cli::DeriveArgs"),
    cut("verify/brought.rs", "crate::cli::VerifyFlags"),
    cut("clean.rs", "crate::cli::CleanArgs"),
    // What belongs to the host, and to no run, was the run's.
    cut("engine/podman/profile.rs", "crate::attest::scratch::Claim"),
    cut("engine/podman/service.rs", "crate::attest::scratch"),
    cut("engine/api/tunnel.rs", "crate::attest::scratch"),
    cut("engine/names.rs", "crate::attest::run::new_run_id"),
    cut("sandbox/settings.rs", "crate::attest::sides::Sides"),
    cut("sandbox/settings.rs", "crate::launch::sides::Sides"),
    cut("survey/docker.rs", "crate::attest::venue"),
    cut("survey/engine_api.rs", "crate::attest::run::new_run_id"),
    cut("survey/routes/file.rs", "crate::attest::run::attest"),
    cut("survey/routes/postgres.rs", "crate::attest::run::attest"),
    cut("packet/facts.rs", "crate::attest::run::describe_tool"),
    cut("host/janitor.rs", "crate::attest::scratch"),
    cut("host/scratch.rs", "crate::attest::janitor::Janitor"),
    cut("host/scratch.rs", "crate::sandbox::profile::Limits"),
    cut("host/first.rs", "crate::attest::sides::Sides"),
    cut("host/first.rs", "crate::launch::sides::Sides"),
    cut("host/first.rs", "crate::engine::Configured"),
    cut("host/first.rs", "crate::engine::held::Held"),
    cut("host/outside.rs", "crate::engine::Configured"),
    cut("host/outside.rs", "crate::engine::group_limits"),
    cut("host/sentry.rs", "crate::attest::outside::bounded"),
    cut("host/sentry.rs", "crate::engine::Configured"),
    cut("host/visitor.rs", "crate::attest::outside"),
    cut("host/venue.rs", "crate::attest::whereabouts::Whereabouts"),
    cut("host/venue.rs", "crate::engine::EngineFacts"),
    cut("host/venue.rs", "crate::engine::operating_system"),
    // Submodules imported each other in circles.
    cut("host/claim.rs", "crate::host::janitor::Janitor"),
    cut("host/claim.rs", "crate::host::scratch::Scratch"),
    cut("host/proc.rs", "crate::host::visitor"),
    cut("host/sentry.rs", "crate::host::outside::view"),
    cut("host/visitor.rs", "crate::host::outside::view"),
    cut("attest/trial.rs", "crate::attest::neighbour"),
    cut("attest/trial.rs", "crate::attest::scout"),
    cut("attest/container.rs", "crate::attest::neighbour"),
    cut("attest/container.rs", "crate::attest::scout"),
    cut("attest/controls.rs", "crate::attest::run::attest"),
    cut("attest/neighbour.rs", "crate::attest::run::attest"),
    cut("attest/neighbour.rs", "crate::attest::controls"),
    cut("engine/api/connect.rs", "crate::engine::podman::libpod"),
    cut("engine/recover/groups.rs", "crate::engine::local::members"),
    cut("engine/recover/docker.rs", "crate::engine::docker::listed"),
    cut(
        "engine/local/keepers.rs",
        "crate::engine::api::names::run_of",
    ),
    cut(
        "engine/local/remains.rs",
        "crate::engine::api::names::run_of",
    ),
    cut(
        "engine/podman/facts.rs",
        "crate::engine::local::host::operating_system",
    ),
    cut(
        "engine/podman/cgroups.rs",
        "crate::engine::local::support::Support",
    ),
    cut("engine/names.rs", "crate::engine::api::Api"),
    cut("engine/support.rs", "crate::engine::local::LocalEngine"),
    cut("engine/api/meter.rs", "crate::engine::api::dial::Address"),
    cut("engine/api/tls.rs", "crate::engine::api::dial::Address"),
    cut("engine/api/tunnel.rs", "crate::engine::api::dial::Address"),
    cut("engine/api/raw.rs", "crate::engine::api::connect::explain"),
    cut("engine/api/endpoint.rs", "crate::engine::api::Api"),
    cut("engine/local/cgroup.rs", "crate::engine::local::keeper"),
    cut(
        "engine/local/oci.rs",
        "crate::engine::local::keeper::limits::is_late",
    ),
    cut(
        "engine/local/keeper/common.rs",
        "crate::engine::local::keeper::life::main",
    ),
    cut("engine/local/session.rs", "crate::engine::local::engine"),
    cut("engine/local/reserve.rs", "crate::engine::local::session"),
    cut(
        "engine/podman/libpod.rs",
        "crate::engine::podman::listed::foreign",
    ),
    cut(
        "engine/podman/session.rs",
        "crate::engine::podman::PodmanEngine",
    ),
    cut("survey/redact.rs", "crate::survey::call::Call"),
    cut("survey/redact/names.rs", "crate::survey::redact::Redactor"),
    cut("survey/ci.rs", "crate::survey::inventory::Survey"),
    cut("survey/docker.rs", "crate::survey::inventory::Survey"),
    cut("survey/host.rs", "crate::survey::inventory::Survey"),
    cut("survey/local.rs", "crate::survey::inventory::Survey"),
    cut("survey/podman.rs", "crate::survey::inventory::Survey"),
    cut("survey/ssh.rs", "crate::survey::inventory::Survey"),
    cut(
        "survey/routes/http.rs",
        "crate::survey::routes::form::Routes",
    ),
    cut(
        "survey/routes/result.rs",
        "crate::survey::routes::form::Routes",
    ),
    cut("packet/ci.rs", "crate::packet::write::write"),
    cut("packet/kubernetes.rs", "crate::packet::write::write"),
    cut("packet/operator.rs", "crate::packet::write::write"),
];

const fn cut(file: &'static str, path: &'static str) -> Cut {
    Cut { file, path }
}
