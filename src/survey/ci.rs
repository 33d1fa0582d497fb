//! Runners of CI systems, and the operator: another party who can run it.

use crate::survey::call::Call;
use crate::survey::conditions::Conditions;
use crate::survey::surface::{Can, Decision, Surface};

/// The CI systems that are told apart, by their variables.
const SYSTEMS: &[(&str, &str)] = &[
    ("GITHUB_ACTIONS", "GitHub Actions"),
    ("GITLAB_CI", "GitLab CI"),
    ("BUILDKITE", "Buildkite"),
    ("JENKINS_URL", "Jenkins"),
    ("CIRCLECI", "CircleCI"),
    ("TF_BUILD", "Azure Pipelines"),
    ("TEAMCITY_VERSION", "TeamCity"),
];

/// Names of variables that say what kind of runner this is. Their values are
/// words, not secrets.
const WORDS: &[&str] = &[
    "RUNNER_ENVIRONMENT",
    "RUNNER_OS",
    "CI_RUNNER_EXECUTABLE_ARCH",
];

/// The CI job that this is, if it is one.
pub fn here(conditions: &Conditions) -> Surface {
    let names = &conditions.host.ci_variables;
    let mut calls = vec![Call::new(
        "names of CI variables that are set",
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(" "),
        },
    )];
    for name in WORDS {
        if let Ok(value) = std::env::var(name) {
            calls.push(Call::new(format!("variable {name}"), value));
        }
    }
    if names.is_empty() {
        let mut surface = Surface::absent("CI job (this process)", calls);
        surface.venue_type = "CI";
        surface.permission_gap = "this is no CI job".into();
        return surface;
    }
    let system = SYSTEMS
        .iter()
        .find(|(variable, _)| names.iter().any(|name| name == variable))
        .map_or("a CI system", |(_, name)| name);
    let plausible = conditions.claim(conditions.host, &conditions.host.kernel);
    Surface {
        venue_type: "CI",
        approved: conditions.approved(&plausible),
        can_run: Can::no("a job is no sandbox: see the engines"),
        can_write_files: Can::yes("the job's working directory"),
        can_collect_logs: Can::yes("artifacts and the job's log"),
        production_risk: "none if the runner is ephemeral".into(),
        permission_gap: "an engine that this job may use".into(),
        decision: Decision::InspectOnly,
        decision_note: "claim --venue ci with an engine from this list".into(),
        ..Surface::absent(format!("CI job (this process, {system})"), calls)
    }
}

/// Those who can run it elsewhere.
pub fn elsewhere() -> Vec<Surface> {
    let row = |surface: &str, venue_type, approved: &str, gap: &str, packet: &str| Surface {
        venue_type,
        approved: approved.into(),
        can_run: Can::not_tried("it is not here"),
        can_write_files: Can::not_tried("it is not here"),
        can_collect_logs: Can::not_tried("it is not here"),
        production_risk: match venue_type {
            "operator" => "low: a throwaway container on a host with others".into(),
            _ => "none: the runner is ephemeral".into(),
        },
        permission_gap: gap.into(),
        decision: Decision::Prepare,
        decision_note: format!("tki-attest packet --for {packet}"),
        ..Surface::absent(surface, Vec::new())
    };
    vec![
        row(
            "GitHub Actions, hosted runner",
            "CI",
            "ci, once the owner authorises a repository",
            "the owner must authorise a repository that holds the workflow",
            "github-actions --out attest.yml",
        ),
        row(
            "GitLab CI, a runner of the owner's choice",
            "CI",
            "ci, once the owner authorises a runner",
            "the owner must authorise a project and a runner",
            "gitlab-ci --out attest.gitlab-ci.yml",
        ),
        row(
            "Human operator with the right to run containers",
            "operator",
            "vps, by the owner or operator",
            "a person with root or engine rights on the VPS",
            "operator --out packet.md",
        ),
    ]
}
