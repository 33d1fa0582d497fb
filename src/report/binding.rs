//! The matrix binding as Markdown: test → probes → facts → result.

use crate::report::markdown::plain;
use std::fmt::Write as _;
use tki_evidence::binding::Binding;

/// The binding as a page.
pub fn markdown(binding: &Binding) -> String {
    let mut out = String::new();
    let b4 = if binding.b4_prime {
        "**B4′ is asserted**: every L1 test is bound and passes, and the evidence was accepted."
    } else {
        "**B4′ is not asserted.**"
    };
    let _ = writeln!(
        out,
        "# Matrix {} bound to run {}\n\n{b4}\n\n- decision: {}\n- evidence file: sha256:{}\n- matrix: sha256:{}\n",
        plain(&binding.revision, 60),
        plain(&binding.run_id, 60),
        plain(binding.decision.name(), 40),
        binding.evidence_file_sha256,
        binding.matrix_sha256
    );
    out += "| test | layer | probes | facts | result |\n|---|---|---|---|---|\n";
    for test in &binding.tests {
        let probes: Vec<String> = test
            .probes
            .iter()
            .map(|probe| format!("{} {}", plain(&probe.probe_id, 40), probe.verdict.name()))
            .collect();
        let facts: Vec<String> = test
            .probes
            .iter()
            .map(|probe| plain(&probe.errno_or_exit, 120))
            .collect();
        let unbound = |list: &[String]| {
            if list.is_empty() {
                "not bound".to_owned()
            } else {
                list.join("; ")
            }
        };
        let _ = writeln!(
            out,
            "| \\#{} {} | {} | {} | {} | {} |",
            test.test,
            plain(&test.title, 160),
            test.layer,
            unbound(&probes),
            unbound(&facts),
            test.result.name()
        );
    }
    for test in &binding.tests {
        let _ = writeln!(
            out,
            "\n## \\#{} {}\n\nBlocked at: {}. Proof: {}. Requirements: {}.\n",
            test.test,
            plain(&test.title, 160),
            plain(&test.block_point, 200),
            plain(&test.proof, 300),
            plain(&test.requirements.join(", "), 100)
        );
        for probe in &test.probes {
            let _ = writeln!(
                out,
                "- {} → {} → {} ({})",
                plain(&probe.probe_id, 40),
                plain(&probe.facts, 600),
                probe.verdict.name(),
                plain(&probe.artifact_path, 200)
            );
        }
    }
    out
}
