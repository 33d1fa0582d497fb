//! `tki-attest verify`.

use crate::attest::venue;
use crate::cli::{Common, Format, VerifyArgs};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::read_bounded;
use crate::image::{Identity, embedded, read_identity};
use crate::report::decision as report;
use crate::report::table::Paint;
use crate::sandbox::seccomp::Seccomp;
use crate::verify::pipeline::Known;
use crate::verify::{Finding, Inputs, verify};
use std::path::Path;
use tki_evidence::matrix::Matrix;
use tki_evidence::stamp::sha256_hex;
use tki_evidence::strict::MAX_BYTES;

/// Verifies every bundle; the worst one decides the exit code.
pub fn execute(args: &VerifyArgs, common: Common) -> Result<Exit, Failure> {
    let inputs = inputs(args)?;
    let mut findings = Vec::new();
    let mut unreadable = None;
    for bundle in &args.bundles {
        match verify_file(bundle, &inputs) {
            Ok(finding) => findings.push(finding),
            // One bad file does not hide what the others come to.
            Err(failure) if args.bundles.len() > 1 => {
                failure.print(Paint::stderr(common.color));
                unreadable = Some((2, failure.exit));
            }
            Err(failure) => return Err(failure),
        }
    }
    match args.format {
        Format::Json => match findings.as_slice() {
            [one] => output::print_json(one)?,
            many => output::print_json(&many)?,
        },
        Format::Text if common.quiet => {}
        Format::Text => {
            let paint = Paint::stdout(common.color);
            for finding in &findings {
                output::print(&report::render(finding, common.verbose, paint))?;
            }
        }
    }
    let worst = findings
        .iter()
        .map(|finding| match finding.decision.exit() {
            // Disproved is worse than unreadable, and that than not proven.
            Exit::Disproved => (3, Exit::Disproved),
            Exit::Blocked => (1, Exit::Blocked),
            exit => (0, exit),
        });
    let worst = worst.chain(unreadable).max_by_key(|(rank, _)| *rank);
    Ok(worst.map_or(Exit::Blocked, |(_, exit)| exit))
}

fn verify_file(path: &Path, inputs: &Inputs) -> Result<Finding, Failure> {
    let bytes = read(path, "evidence.unreadable")?;
    let folder = path.parent().unwrap_or(Path::new("."));
    verify(&path.to_string_lossy(), &bytes, folder, inputs)
}

fn read(path: &Path, code: &'static str) -> Result<Vec<u8>, Failure> {
    read_bounded(path, MAX_BYTES as u64).map_err(|error| {
        Failure::usage(
            code,
            format!("{}: {error}", path.display()),
            "give a file that can be read",
        )
    })
}

fn inputs(args: &VerifyArgs) -> Result<Inputs, Failure> {
    let image = args.image.as_deref().map(read_identity).transpose()?;
    let seccomp = args.seccomp.as_deref();
    let seccomp = seccomp
        .map(|path| read(path, "seccomp.unreadable"))
        .transpose()?;
    let matrix = match &args.matrix {
        None => None,
        Some(path) => {
            let matrix = Matrix::parse(&read(path, "matrix.unreadable")?);
            Some(matrix.map_err(|error| {
                Failure::usage(
                    "matrix.malformed",
                    format!("{}: {error}", path.display()),
                    "evidence-schema/matrix.v1.schema.json describes the form",
                )
            })?)
        }
    };
    let own = embedded::image()?;
    let mut known = Known {
        image: Some(Identity {
            manifest_digest: own.manifest_digest,
            config_digest: own.config_digest,
            diff_ids: own.diff_ids,
        }),
        seccomp: Vec::new(),
    };
    for name in ["targeted-deny", "deny-by-default"] {
        known.seccomp.push((Seccomp::resolve(name)?.sha256, name));
    }
    Ok(Inputs {
        image,
        seccomp_sha256: seccomp.map(|bytes| sha256_hex(&bytes)),
        matrix,
        require_artifacts: args.require_artifacts,
        venue_rules: Some(venue::rules(args.venue_rules.as_deref())?),
        known,
    })
}
