//! `tki-attest request`.

use crate::cli::{Common, Format, RequestArgs};
use crate::clock::{self, rfc3339};
use crate::commands::error::CommandError;
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::write_new;
use crate::image::{built_in, read_identity};
use crate::random::random_hex;
use crate::sandbox::seccomp::Seccomp;
use crate::verify::brought;
use tki_evidence::request::{Request, SCHEMA, built_in_matrix_sha256};

/// Writes what must be answered.
pub fn execute(args: &RequestArgs, common: Common) -> Result<Exit, Failure> {
    let now = clock::now();
    let request = Request {
        schema: SCHEMA.into(),
        nonce: random_hex::<32>()?,
        venue: args.venue.name().into(),
        image_digest: match &args.image {
            Some(layout) => read_identity(layout)?.manifest_digest,
            None => built_in::image()?.manifest_digest,
        },
        seccomp_sha256: Seccomp::resolve(&args.seccomp)?.sha256,
        matrix_sha256: match &args.matrix {
            Some(path) => brought::matrix(path)?.1,
            None => built_in_matrix_sha256(),
        },
        issued: rfc3339(now),
        not_after: rfc3339(args.not_after.unwrap_or(now + args.valid_for)),
    };
    let mut bytes = serde_json::to_vec_pretty(&request).map_err(CommandError::from)?;
    bytes.push(b'\n');
    // What could not be read back is not handed out.
    Request::parse(&bytes).map_err(CommandError::Request)?;
    let path = write_new(&args.out, &bytes).map_err(|source| CommandError::Out {
        path: args.out.clone(),
        source,
    })?;
    match args.format {
        Format::Json => output::print_json(&request)?,
        Format::Text if common.quiet => {}
        Format::Text => output::print(&format!(
            "request    {}\nnonce      {}\nnot after  {}\n\nhand it to the operator: tki-attest run \
             --venue {} --request {}\nkeep it for the answer:  tki-attest verify --request {} …\n",
            path.display(),
            request.nonce,
            request.not_after,
            request.venue,
            path.display(),
            path.display()
        ))?,
    }
    Ok(Exit::Done)
}
